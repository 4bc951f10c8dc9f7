"""The registry of objectives. A new one is a folder here and a line below."""

from daskw2v.errors import ParameterError
from daskw2v.objectives.base import Objective, Rate, Trainer
from daskw2v.objectives.sgns import SGNS
from daskw2v.registry import find

__all__ = ["OBJECTIVES", "Objective", "Rate", "Trainer", "find_objective", "find_trainer"]

OBJECTIVES = {objective.name: objective for objective in (SGNS,)}


def find_objective(name: str) -> Objective:
    """Return the objective of that name, or raise a ParameterError that lists them."""
    return find(OBJECTIVES, "objective", name)


def find_trainer(objective: Objective, device: str) -> Trainer:
    """Return the kernel of an objective for a device.

    Raises
    ------
    ParameterError
        If that pair does not exist; nothing else is run in its place.
    """
    try:
        return objective.trainers[device]
    except KeyError:
        pairs = ", ".join(f"{o.name} on {d}" for o in OBJECTIVES.values() for d in o.trainers)
        raise ParameterError(
            f"objective={objective.name!r} has no kernel for device={device!r}.", f"There is: {pairs}."
        ) from None
