"""The registry of strategies: how workers train one model together. A new one is a folder here and a line below."""

from daskw2v.config.choice import refuse_unread
from daskw2v.config.params import Params
from daskw2v.config.registry import Registry
from daskw2v.config.resources import Resources
from daskw2v.errors import ParameterError
from daskw2v.objectives.registry import find_objective
from daskw2v.training.averaging.averaging import AVERAGING
from daskw2v.training.columns.columns import COLUMNS
from daskw2v.training.devices import find_device
from daskw2v.training.loop.strategy import Strategy
from daskw2v.training.loop.work import Work
from daskw2v.training.rotation.rotation import ROTATION
from daskw2v.training.sizes import Text, Workers

STRATEGIES = Registry(
    "strategy", "daskw2v.strategies", Strategy, {strategy.name: strategy for strategy in (AVERAGING, ROTATION, COLUMNS)}
)


def find_strategy(name: str) -> Strategy:
    """Return the strategy of this name, or raise a ParameterError that lists all names."""
    return STRATEGIES.find(name)


def make_work(params: Params, resources: Resources, text: Text, workers: Workers) -> Work:
    """Return the description of a run's work, by the class of the strategy that its Params name."""
    return find_strategy(params.strategy.name).work(params, resources, text, workers)


def check_strategy(params: Params, resources: Resources) -> None:
    """Check that the strategy of these Params can train them, and reads all settings.

    Raises
    ------
    ParameterError
        If the strategy does not exist, has no kernel for objective and device, refuses a value, or does not read an
        option that is set; or, for "auto", if this holds for all strategies.
    """
    if params.strategy.is_open:
        _check_auto(params, resources)
        return
    for settings in (params, resources):
        refuse_unread(settings, "strategy", params.strategy.name, STRATEGIES.including(params.strategy.name))
    _check_kernel(params, resources)
    find_strategy(params.strategy.name).check(params)


def with_strategy(params: Params, name: str, resources: Resources) -> Params | None:
    """Return Params with the strategy of this name; None if it has no kernel for them, or refuses a value.

    The strategy must exist. Settings that it does not read are accepted.
    """
    strategy = find_strategy(name)
    try:
        strategy.find_kernel(find_objective(params.objective.name), find_device(resources.device.name))
        other = params.replace(strategy=name)
        strategy.check(other)
    except ParameterError:
        return None
    return other


def with_usable_strategies(params: Params, resources: Resources) -> list[Params]:
    """Return the Params with each strategy that can train them and reads all of their settings, for "auto" to choose.

    Strategies of plug-ins are left out.
    """
    return [params.replace(strategy=name) for name in STRATEGIES if _find_refusal(params, name, resources) is None]


def _find_refusal(params: Params, name: str, resources: Resources) -> ParameterError | None:
    """Return the error for which the strategy of this name refuses settings, or None."""
    try:
        check_strategy(params.replace(strategy=name), resources)
    except ParameterError as error:
        return error
    return None


def _check_auto(params: Params, resources: Resources) -> None:
    """Raise a ParameterError if no strategy can train these settings."""
    if with_usable_strategies(params, resources):
        return
    refusals = {name: _find_refusal(params, name, resources) for name in STRATEGIES}
    refused = {name: error for name, error in refusals.items() if error is not None}
    value_errors = [error for name, error in refused.items() if _could_train(name, params, resources)]
    if len({error.problem for error in value_errors or refused.values()}) == 1:
        raise (value_errors or list(refused.values()))[0]
    problems = " ".join(f"{name}: {error.problem}" for name, error in refused.items())
    raise ParameterError(
        f"No strategy reads all settings of this call. {problems}",
        "Leave out the settings that the wanted strategy does not read.",
    )


def _could_train(name: str, params: Params, resources: Resources) -> bool:
    """Return whether a strategy reads all settings and has a kernel, so that it refuses no more than a value."""
    try:
        for settings in (params, resources):
            refuse_unread(settings, "strategy", name, STRATEGIES)
        _check_kernel(params.replace(strategy=name), resources)
    except ParameterError:
        return False
    return True


def _check_kernel(params: Params, resources: Resources) -> None:
    """Raise a ParameterError if the strategy has no kernel; the error names strategies that have one."""
    objective, device = find_objective(params.objective.name), find_device(resources.device.name)
    try:
        find_strategy(params.strategy.name).find_kernel(objective, device)
    except ParameterError as error:
        fitting = [name for name in STRATEGIES if with_strategy(params, name, resources) is not None]
        if not fitting:
            raise
        alternatives = " or ".join(f"strategy={name!r}" for name in fitting)
        raise ParameterError(
            f"{error.problem[:-1]}, as strategy={params.strategy.name!r} needs.",
            f"Choose {alternatives} for this objective, or another one. {error.remedy}",
        ) from None
