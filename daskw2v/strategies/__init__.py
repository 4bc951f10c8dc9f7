"""The registry of strategies, the ways for workers to meet. A new one is a module here and a line below."""

from daskw2v.errors import ParameterError
from daskw2v.objectives import Objective, find_objective
from daskw2v.params import Params, Resources
from daskw2v.registry import find, refuse_unread
from daskw2v.strategies.averaging import AVERAGING
from daskw2v.strategies.base import Strategy
from daskw2v.strategies.columns import COLUMNS
from daskw2v.strategies.rotation import ROTATION

__all__ = ["STRATEGIES", "check_strategy", "find_strategy"]

STRATEGIES = {strategy.name: strategy for strategy in (AVERAGING, ROTATION, COLUMNS)}


def find_strategy(name: str) -> Strategy:
    """Return the strategy of that name, or raise a ParameterError that lists them."""
    return find(STRATEGIES, "strategy", name)


def check_strategy(params: Params, resources: Resources) -> None:
    """Refuse what the strategy of these Params cannot train or would not read.

    Raises
    ------
    ParameterError
        If the strategy does not exist, has no kernel for objective and device, or an option of others is set.
    """
    strategy, every = find_strategy(params.strategy), STRATEGIES.values()
    refuse_unread(params, "strategy", strategy.name, {s.name: s.options for s in every})
    refuse_unread(resources, "strategy", strategy.name, {s.name: s.resource_options for s in every})
    _check_kernel(strategy, params, resources)
    strategy.check(params)


def _check_kernel(strategy: Strategy, params: Params, resources: Resources) -> None:
    objective = find_objective(params.objective)
    try:
        strategy.find_kernel(objective, resources.device)
    except ParameterError as error:
        fitting = [s.name for s in STRATEGIES.values() if _has_kernel(s, objective, resources.device)]
        if not fitting:
            raise
        others = " or ".join(f"strategy={name!r}" for name in fitting)
        raise ParameterError(
            f"{error.problem[:-1]}, as strategy={strategy.name!r} needs.",
            f"Choose {others} for this objective, or another one. {error.remedy}",
        ) from None


def _has_kernel(strategy: Strategy, objective: Objective, device: str) -> bool:
    try:
        strategy.find_kernel(objective, device)
    except ParameterError:
        return False
    return True
