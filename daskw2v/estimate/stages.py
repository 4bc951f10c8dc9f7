"""The estimate of a whole run."""

from daskw2v.estimate import data
from daskw2v.estimate.base import FLOAT, LONG, Estimate, Part, Workers
from daskw2v.estimate.text import Text
from daskw2v.estimate.training import TRAINING, publish
from daskw2v.params import Params, Resources
from daskw2v.strategies.rotation import ROTATION, fits_memory

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
    stages = (
        data.encode(text, workers),
        *([data.phrases(text, workers)] if params.phrases else []),
        data.vocabulary(text, workers),
        TRAINING[params.strategy](params, resources, text, workers),
        publish(params, resources, text, workers),
    )
    vectors = text.vocabulary * (FLOAT * params.vector_size + data.LETTERS + 2 * LONG)
    client = Part("process", _CLIENT), Part("shards", _SHARD * text.shards), Part("vectors it returns", vectors)
    return Estimate(stages, client, tuple(_notes(params, text, workers)))


def _notes(params: Params, text: Text, workers: Workers) -> list[str]:
    stored = params.strategy == ROTATION.name and not fits_memory(text.vocabulary, params.vector_size, workers.memory)
    return ["the cluster's memory does not hold the model: its partitions go through the work directory"] * stored
