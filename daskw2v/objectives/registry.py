"""The registry of objectives. A new objective is a folder beside this file, and a line of the registry."""

from functools import lru_cache
from typing import Any

from daskw2v.config.choice import refuse_unread
from daskw2v.config.params import Params
from daskw2v.config.registry import Registry, find
from daskw2v.errors import ParameterError
from daskw2v.objectives.base import BucketTrainer, ColumnTrainer, Objective, Trainer
from daskw2v.objectives.cbow_hs import CBOW_HS
from daskw2v.objectives.cbow_ns import CBOW_NS
from daskw2v.objectives.context_matrix import CONTEXT_MATRIX
from daskw2v.objectives.sg_hs import SG_HS
from daskw2v.objectives.sgns import SGNS
from daskw2v.objectives.subwords.objective import SUBWORDS

OBJECTIVES = Registry(
    "objective",
    "daskw2v.objectives",
    Objective,
    {objective.name: objective for objective in (SGNS, CBOW_NS, SG_HS, CBOW_HS, CONTEXT_MATRIX, SUBWORDS)},
)


def find_objective(name: str) -> Objective:
    """Return the objective of a name; raise a ParameterError that lists the names if it is unknown."""
    return OBJECTIVES.find(name)


def check_options(params: Params) -> None:
    """Raise an error for settings that the objective of Params does not read.

    Raises
    ------
    ParameterError
        If the objective does not exist, or a setting of other objectives is set; or as `settle_params` does.
    """
    refuse_unread(params, "objective", params.objective.name, OBJECTIVES.including(params.objective.name))
    settle_params(params)


def settle_params(params: Params) -> Params:
    """Return Params whose optimizer and learning rate are set, by the objective's defaults if they were None.

    Raises
    ------
    ParameterError
        If the objective does not exist or has no such optimizer, or `min_alpha` is above the initial learning rate.
    """
    alphas = find_objective(params.objective.name).alphas
    optimizer = next(iter(alphas)) if params.optimizer is None else params.optimizer
    default_alpha = find(alphas, f"optimizer of {params.objective.name}", optimizer)
    return params.replace(optimizer=optimizer, alpha=default_alpha if params.alpha is None else params.alpha)


@lru_cache(maxsize=16)  # called for each slice of each bucket
def start_alpha(params: Params) -> float:
    """Return the learning rate that training starts with: that of the Params, or the objective's default."""
    alpha = settle_params(params).alpha
    assert alpha is not None
    return alpha


def find_trainer(objective: Objective, device: str) -> Trainer:
    """Return the function that trains centers of text by an objective on a device, such as "cpu".

    Raises
    ------
    ParameterError
        If the objective has no kernel for the device; no other device is used instead.
    """
    return _find_kernel("kernel", "trainers", objective, device)


def find_bucket_trainer(objective: Objective, device: str) -> BucketTrainer:
    """Return the function that trains buckets of pairs by an objective on a device; raises as `find_trainer` does."""
    return _find_kernel("kernel for buckets", "bucket_trainers", objective, device)


def find_column_trainer(objective: Objective, device: str) -> ColumnTrainer:
    """Return the function that trains columns of the word-context matrix on a device; raises as `find_trainer` does."""
    return _find_kernel("kernel for columns", "column_trainers", objective, device)


def _find_kernel(title: str, field: str, objective: Objective, device: str) -> Any:
    """Return the function for a device from a field of `Objective`; `title` names it in the error.

    Raises as `find_trainer` does.
    """
    known = getattr(objective, field)
    if device in known:
        return known[device]
    all_known = {**OBJECTIVES, objective.name: objective}.values()
    pairs = ", ".join(f"{other.name} on {name}" for other in all_known for name in getattr(other, field))
    raise ParameterError(f"objective={objective.name!r} has no {title} for device={device!r}.", f"There is: {pairs}.")
