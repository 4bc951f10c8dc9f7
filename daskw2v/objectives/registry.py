"""The registry of objectives. A new one is a folder beside this file and a line below."""

from functools import lru_cache
from typing import Any

from daskw2v.config.choice import known_settings, reads_field, refuse_unread
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
    """Return the objective of that name, or raise a ParameterError that lists them."""
    return OBJECTIVES.find(name)


def reads(objective: Objective, field: str) -> bool:
    """Return whether an objective reads a field of Params."""
    known = known_settings(Params)[field]
    if known.choices and known.owner.axis == "objective":
        return field in objective.settings.names()
    return reads_field(objective, "objective", known.field)


def check_options(params: Params) -> None:
    """Refuse settings that the objective of these Params does not read.

    Raises
    ------
    ParameterError
        If the objective does not exist or has no such optimizer, or a setting of other objectives is set.
    """
    refuse_unread(params, "objective", params.objective.name, OBJECTIVES.including(params.objective.name))
    settled(params)


def settled(params: Params) -> Params:
    """Return the Params with the objective's own optimizer and learning rate where they leave them open.

    Raises
    ------
    ParameterError
        If the objective has no such optimizer, or `min_alpha` is above the learning rate that it starts with.
    """
    alphas = find_objective(params.objective.name).alphas
    optimizer = next(iter(alphas)) if params.optimizer is None else params.optimizer
    own = find(alphas, f"optimizer of {params.objective.name}", optimizer)
    return params.replace(optimizer=optimizer, alpha=own if params.alpha is None else params.alpha)


@lru_cache(maxsize=16)  # rounds ask for each slice of each bucket
def start_alpha(params: Params) -> float:
    """Return the learning rate that training starts with: that of the Params, or else the objective's own."""
    alpha = settled(params).alpha
    assert alpha is not None
    return alpha


def find_trainer(objective: Objective, device: str) -> Trainer:
    """Return the kernel of an objective for a device.

    Raises
    ------
    ParameterError
        If the objective has no kernel for the device; no other one is run instead.
    """
    return _find("kernel", "trainers", objective, device)


def find_bucket_trainer(objective: Objective, device: str) -> BucketTrainer:
    """Return the kernel of an objective for the buckets of a device, or raise like `find_trainer`."""
    return _find("kernel for buckets", "bucket_trainers", objective, device)


def find_column_trainer(objective: Objective, device: str) -> ColumnTrainer:
    """Return the kernel of an objective for columns of the word-context matrix, or raise like `find_trainer`."""
    return _find("kernel for columns", "column_trainers", objective, device)


def _find(what: str, kind: str, objective: Objective, device: str) -> Any:
    """Return the trainer of a kind, a field of `Objective`, for a device."""
    known = getattr(objective, kind)
    if device in known:
        return known[device]
    all_known = {**OBJECTIVES, objective.name: objective}.values()
    pairs = ", ".join(f"{each.name} on {on}" for each in all_known for on in getattr(each, kind))
    raise ParameterError(f"objective={objective.name!r} has no {what} for device={device!r}.", f"There is: {pairs}.")
