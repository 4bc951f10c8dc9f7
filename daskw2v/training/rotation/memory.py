"""Memory of partitions that are trained two by two; where the cluster does not hold them, they go through the store."""

from typing import NamedTuple

from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.sampling.pairs import pair_type
from daskw2v.sampling.segments import POSITION
from daskw2v.sampling.settings import NegativeSampling
from daskw2v.sampling.skipgrams import most_dealt, most_of_slice
from daskw2v.training.devices import find_device
from daskw2v.training.rotation.pass_schedule import RotationPasses, most_together, passes_of_epoch
from daskw2v.training.rotation.settings import Rotation
from daskw2v.training.sizes.memory import (
    BLOCK,
    INT,
    LONG,
    RunMemory,
    Sizes,
    StageMemory,
    Workers,
    open_shards,
    publish,
    table_bytes,
)
from daskw2v.training.sizes.text import Text

OUT_OF_CORE = "the cluster's memory does not hold the model: its partitions go through the work directory"
SENT_BYTES = {"float32": 4, "bfloat16": 2}  # of a value of an output partition that is no task's
_SHARE = 0.3  # of the cluster's memory that a model may take: training copies, and what Dask keeps, need the rest
_PAIRS_SHARE = 0.15  # that the pairs of these passes may take
_TWICE = 1.5  # a part that another worker took is there twice until its pass is trained
_NOISE = {"tns": 0, "sns": 1}  # entries of a pair besides itself; with bns one for each negative
_CHECKED = 2 * BLOCK  # partitions are put in order


class Fits(NamedTuple):
    """The parts of a run that a cluster's memory holds; the rest goes through files.

    Parameters
    ----------
    model, pairs
        Whether it holds both tables, and the pairs of some passes.
    together
        Passes whose pairs it holds for one task, at most, where one worker has all of them.
    """

    model: bool
    pairs: bool
    together: int


def fits_memory(params: Params, text: Text, workers: Workers) -> Fits:
    """Return what workers hold of a run in memory."""
    of_pass, memory = _pairs_of_pass(params, text), workers.memory
    model = fits_model(text.vocabulary, params.vector_size, Rotation.of(params).sent_dtype, memory)
    pairs = model and fits_pairs(of_pass, memory)
    length = text.words / passes_of_epoch(params)
    return Fits(model, pairs, together(length, of_pass, workers.threads, memory) if pairs and workers.n == 1 else 1)


def together(length: float, of_pass: float, threads: int, memory: float) -> int:
    """Return how many passes one task trains, at most.

    Parameters
    ----------
    length, of_pass
        Positions of a pass, and bytes of its pairs.
    threads, memory
        Threads and bytes of memory of the one worker.
    """
    room = _PAIRS_SHARE * memory / passes_ahead(1) / max(1.0, of_pass)
    return int(max(1, min(most_together(length, threads), room)))


def fits_model(n_words: int, vector_size: int, sent_dtype: str, memory: float) -> bool:
    """Return whether a cluster that holds so many bytes holds both tables."""
    return (4 + SENT_BYTES[sent_dtype]) * n_words * vector_size <= _SHARE * memory


def fits_pairs(of_pass: float, memory: float) -> bool:
    """Return whether a cluster's memory holds pairs that take so many bytes a pass."""
    return passes_ahead(2) * _TWICE * of_pass <= _PAIRS_SHARE * memory


def passes_ahead(workers: int) -> int:
    """Return the passes whose pairs are there: of one that is trained, and of one that is dealt in its gaps.

    Several workers have gaps at other times, and deal one more.
    """
    return 2 if workers == 1 else 3


def _pairs_of_pass(params: Params, text: Text) -> float:
    return _pairs(params, text, text.left / passes_of_epoch(params))


def _pairs(params: Params, text: Text, words: float) -> float:
    """Return the bytes of the pairs, with noise, of so many words that subsampling left."""
    contexts = params.window + 1 if params.shrink_windows else 2 * params.window  # on the whole
    of = Rotation.of(params)
    entry = pair_type(-(-text.vocabulary // of.n_partitions)).itemsize
    noise = _NOISE.get(of.negative_rule) if isinstance(params.objective, NegativeSampling) else 0
    return entry * (1 + (NegativeSampling.of(params).negative if noise is None else noise)) * contexts * words


def run_memory(params: Params, resources: Resources, text: Text, workers: Workers) -> RunMemory:
    """Return the memory of a run."""
    training = _train(params, resources, text, workers)
    if fits_memory(params, text, workers).model:
        return RunMemory(training, publish(params, resources, text, workers, _CHECKED))
    held, _ = table_bytes(params, text.vocabulary)
    partition = max(held.values()) / Rotation.of(params).n_partitions
    rows = {"rows written or checked": max(_CHECKED, workers.threads * max(BLOCK, partition))}
    return RunMemory(training, StageMemory.of("publish", rows), (OUT_OF_CORE,))


def _train(params: Params, resources: Resources, text: Text, workers: Workers) -> StageMemory:
    """Return the memory of tasks that train a group of input and a group of output partitions on their pairs."""
    device = find_device(resources.device.name)
    held, own = (sum(tables.values()) for tables in table_bytes(params, text.vocabulary))
    n, fits = Rotation.of(params).n_partitions, fits_memory(params, text, workers)
    n_groups = RotationPasses(params, text.words).n_steps
    tasks = min(workers.tasks(device.resource), -(-n_groups // workers.n))
    partition = held / 2 / n
    length = text.words // passes_of_epoch(params)
    pairs = min(_pairs_of_pass(params, text), _pairs(params, text, most_of_slice(n, length)))
    words = 3 * LONG * text.vocabulary / n_groups  # counts, and tables made of them
    task: Sizes = {
        "partitions in training": tasks * own / n_groups,
        "rows that are read": tasks * partition,
        "negatives or trees": tasks * words,
        "pairs": tasks * 3 * pairs / n_groups**2,  # a slice is read, and put together, while another is trained
    }
    # A group's old rows are released only after the new ones exist
    model = {"model": held / workers.n, "groups just trained": tasks * held / n_groups} if fits.model else {}
    kept = {"model": held / workers.n} if fits.model else {}
    twice = _TWICE if workers.n > 1 else 1.0
    coming = min(fits.together, params.epochs * passes_of_epoch(params)) * passes_ahead(workers.n)
    ahead = {"pairs of passes": coming * twice * _pairs_of_pass(params, text) / workers.n} if fits.pairs else {}

    def dealing(threads: int) -> Sizes:
        """Return the memory of tasks that deal pieces of the next pass, side by side."""
        if not threads:
            return {}
        dealt = most_dealt(n, length, threads, workers.n if fits.pairs else None)
        return {
            "text": (POSITION + 2 * INT + LONG) * min(threads * text.words, dealt),
            "pairs being dealt": _pairs(params, text, min(threads * text.left, dealt)),
            "open shards": open_shards(text),
        }

    of_gpu = -(-tasks // workers.devices)
    gpu = {"partitions": of_gpu * own / n_groups, "pairs": of_gpu * pairs / n**2} if device.free_memory else {}
    beside = dealing(workers.threads - tasks)  # on threads that do not train
    return StageMemory.of(
        "train", {**model, **ahead, **task, **beside}, {**kept, **ahead, **dealing(workers.threads)}, gpu=gpu
    )
