"""What the estimates of all strategies are made of: tables, open shards, and writing the model."""

from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.features.settings import FEATURES, has_features, most_rows
from daskw2v.kernels.simd import padded
from daskw2v.objectives.registry import find_objective
from daskw2v.sampling.reader import CHUNK, CHUNKS, OPEN_SHARDS
from daskw2v.training.sizes.memory import FLOAT, INT, LONG, StageMemory, Workers
from daskw2v.training.sizes.text import Text

BLOCK = 48 << 20  # rows that are being written or read, and checked

Sizes = dict[str, float]


def table_bytes(params: Params, n_words: int) -> tuple[dict[str, int], dict[str, int]]:
    """Return the bytes of each table as Dask has it, and as kernels do: rows padded to whole cache lines."""
    rows = find_objective(params.objective.name).tables(params, n_words)
    rows |= {FEATURES: most_rows(params, n_words)} if has_features(params) else {}
    width = params.vector_size
    return ({name: FLOAT * n * width for name, n in rows.items()},
            {name: FLOAT * n * padded(width) for name, n in rows.items()})  # fmt: skip


def open_shards(text: Text) -> int:
    """Return the bytes of the shards that a reader has open: words' ids by their codes, starts of sentences, chunks."""
    shard = INT * text.shard_types + text.shard_words // 2
    return min(OPEN_SHARDS, text.shards) * shard + INT * min(CHUNKS * CHUNK, text.words)


def publish(params: Params, resources: Resources, text: Text, workers: Workers, checked: int = BLOCK) -> StageMemory:
    """Return the memory of writing and checking a model that workers still hold, and of its evaluation.

    `checked` is the number of bytes that are checked at a time.
    """
    held, _ = table_bytes(params, text.vocabulary)
    rows = max(checked, workers.threads * BLOCK)
    writing = {"model": sum(held.values()) / workers.n, "rows written or checked": rows}
    evaluating: Sizes = {}
    if any(resources.eval_sets.values()):
        words = 4 * LONG * text.vocabulary
        evaluating = {"model": sum(held.values()), "input rows in one piece": 2 * held["input"], "words": words}
    return StageMemory.of("publish", writing, evaluating)
