"""All registries, and the check that workers have the chosen plug-ins."""

from collections.abc import Mapping
from typing import Any

from distributed import Client

from daskw2v.cluster.workers import ask_workers
from daskw2v.config.params import Params
from daskw2v.config.registry import Registry
from daskw2v.config.resources import Resources
from daskw2v.corpus.formats import FORMATS
from daskw2v.corpus.tokenizers import TOKENIZERS
from daskw2v.errors import ClusterError, ParameterError
from daskw2v.objectives.registry import OBJECTIVES
from daskw2v.training.averaging.merge import MERGE_RULES
from daskw2v.training.devices import DEVICES
from daskw2v.training.strategies import STRATEGIES

AXES: Mapping[str, Registry[Any]] = {
    registry.field: registry for registry in (TOKENIZERS, FORMATS, OBJECTIVES, STRATEGIES, MERGE_RULES, DEVICES)
}


def check_plug_ins(client: Client, params: Params, resources: Resources) -> None:
    """Raise a ClusterError if a worker lacks a chosen plug-in or cannot load it."""
    chosen = {**resources.flat(), **params.flat()}
    names = {field: chosen[field] for field in AXES if isinstance(chosen.get(field), str)}
    plug_ins = {field: name for field, name in names.items() if AXES[field].is_added(name)}
    if not plug_ins:
        return
    for address, problem in ask_workers(client, _find_problem, plug_ins).items():
        if problem is not None:
            raise ClusterError(f"Worker {address}: {problem}", "Install the same plug-ins on all workers.")


def _find_problem(plug_ins: Mapping[str, str]) -> str | None:
    """Return why this process cannot load `plug_ins`, names by field; None if it can. Dask would log a raised error."""
    try:
        for field, name in plug_ins.items():
            AXES[field].find(name)
    except ParameterError as error:
        return error.problem
    return None
