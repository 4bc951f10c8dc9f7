"""The registry of objectives. A new one is a folder here and a line below."""

from daskw2v.errors import ParameterError
from daskw2v.objectives.base import HotRows, Memory, Objective, Rate, Trainer
from daskw2v.objectives.cbow_hs import CBOW_HS
from daskw2v.objectives.cbow_ns import CBOW_NS
from daskw2v.objectives.sg_hs import SG_HS
from daskw2v.objectives.sgns import SGNS
from daskw2v.params import Params
from daskw2v.registry import find

__all__ = [
    "OBJECTIVES",
    "HotRows",
    "Memory",
    "Objective",
    "Rate",
    "Trainer",
    "check_options",
    "find_objective",
    "find_trainer",
    "start_alpha",
]

OBJECTIVES = {objective.name: objective for objective in (SGNS, CBOW_NS, SG_HS, CBOW_HS)}


def find_objective(name: str) -> Objective:
    """Return the objective of that name, or raise a ParameterError that lists them."""
    return find(OBJECTIVES, "objective", name)


def check_options(params: Params) -> None:
    """Refuse what the objective of these Params would not read.

    Raises
    ------
    ParameterError
        If the objective does not exist, or an option of others is set.
    """
    objective = find_objective(params.objective)
    for name in sorted({option for other in OBJECTIVES.values() for option in other.options} - {*objective.options}):
        value = getattr(params, name)
        if value != getattr(Params, name):
            users = ", ".join(other.name for other in OBJECTIVES.values() if name in other.options)
            raise ParameterError(
                f"{name}={value!r} changes nothing for objective={objective.name!r}; it is for {users}.",
                f"Leave {name} out, or choose one of these objectives.",
            )


def start_alpha(params: Params) -> float:
    """Return the learning rate that training starts with: that of the Params, or else the objective's own."""
    return find_objective(params.objective).alpha if params.alpha is None else params.alpha


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
