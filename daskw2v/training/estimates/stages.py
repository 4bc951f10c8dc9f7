"""The estimate of a whole run."""

from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.training.sizes import data
from daskw2v.training.sizes.memory import FLOAT, LONG, Estimate, MemoryPart, Workers
from daskw2v.training.sizes.text import Text
from daskw2v.training.strategies import find_strategy

_CLIENT = 250 << 20  # of a process with a Dask client
_SHARD = 4 << 10  # what the client knows of a shard


def estimate(params: Params, resources: Resources, text: Text, workers: Workers) -> Estimate:
    """Return what a run takes.

    Parameters
    ----------
    params, resources
        The run.
    text
        Its text, known or guessed.
    workers
        Its workers.
    """
    run = find_strategy(params.strategy.name).memory(params, resources, text, workers)
    stages = (
        data.encode(text, workers),
        *([data.phrases(text, workers)] if params.phrases else []),
        data.vocabulary(text, workers),
        run.train,
        run.publish,
    )
    vectors = text.vocabulary * (FLOAT * params.vector_size + data.LETTERS + 2 * LONG)
    client = (
        MemoryPart("process", _CLIENT),
        MemoryPart("shards", _SHARD * text.shards),
        MemoryPart("vectors it returns", vectors),
    )
    return Estimate(stages, client, run.notes)
