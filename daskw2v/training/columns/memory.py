"""Estimates of the memory of strategy `columns`: parts of the words, and columns of the word-context matrix."""

from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.objectives.base import MOMENTS
from daskw2v.objectives.registry import find_objective, settled
from daskw2v.sampling.context_matrix import BAND, COLUMNS
from daskw2v.sampling.settings import SampledContexts
from daskw2v.training.columns.settings import Columns
from daskw2v.training.columns.subwords import network_bytes
from daskw2v.training.devices import find_device
from daskw2v.training.sizes.memory import INT, LONG, RunMemory, Sizes, StageMemory, Workers, publish, table_bytes
from daskw2v.training.sizes.text import Text


def run_memory(params: Params, resources: Resources, text: Text, workers: Workers) -> RunMemory:
    """Return the memory of a run."""
    return RunMemory(_train(params, resources, text, workers), publish(params, resources, text, workers))


def _train(params: Params, resources: Resources, text: Text, workers: Workers) -> StageMemory:
    """Return the memory of tasks: trained rows with their moments, fixed rows, columns of the matrix."""
    device, objective = find_device(resources.device.name), find_objective(params.objective.name)
    held, own = table_bytes(params, text.vocabulary)
    tables, copies = sum(held.values()), sum(own.values())
    moments = 1 + MOMENTS[settled(params).optimizer or ""]
    parts = len(workers.homes)
    alone = parts == 1 and not objective.follows  # one task then trains both tables
    tasks = workers.tasks(device.resource) if objective.follows else workers.devices
    largest = max(held.values())
    size, gathered = SampledContexts.of(params).context_size, Columns.of(params).gather_every
    width = min(COLUMNS, size)
    panel = INT * width * text.vocabulary / workers.n
    # Two panels are kept while a third one is read; a step's columns are a copy
    panels = min(3, -(-size // COLUMNS)) * panel + panel * gathered / width
    prepared = objective.prepared_bytes(params, text.vocabulary)
    if alone:
        rows: Sizes = {"rows": moments * tables, "trained rows": moments * copies, "rows taken out": moments * largest}
    else:
        part = largest / workers.n
        rows = {
            "rows": tables + (moments - 1) * tables / workers.n,
            "fixed rows": tasks * max(own.values()),
            "trained rows": moments * max(own.values()) / workers.n,
            "rows taken out": moments * part,
        }
    training = {**rows, "columns": panels, **prepared}
    band = min(BAND, text.vocabulary * size)
    building = {"contexts of a band": workers.threads * band * (LONG + 2 * INT)}
    gpu = {"tables": moments * copies if alone else max(own.values()) * (1 + moments / parts), **prepared,
           "columns": INT * gathered * text.vocabulary / parts,
           "network": network_bytes(params.vector_size) if objective.follows else 0}  # fmt: skip
    return StageMemory.of("train", training, building, gpu=gpu if device.free_memory else {})
