"""Memory of training, by strategy: what Dask holds between tasks, and what a task makes besides."""

from collections.abc import Callable, Mapping

from daskw2v.devices import find_device
from daskw2v.estimate.base import FLOAT, INT, LONG, Stage, Workers
from daskw2v.estimate.text import Text
from daskw2v.objectives import find_objective, settled
from daskw2v.objectives.base import MOMENTS
from daskw2v.objectives.negatives import prepare_noise
from daskw2v.objectives.paths import prepare_tree
from daskw2v.params import Params, Resources
from daskw2v.sampling.matrix_tasks import BAND, COLUMNS
from daskw2v.sampling.reader import OPEN_SHARDS
from daskw2v.sampling.segments import SEGMENT
from daskw2v.sampling.skipgrams import KEPT_BYTES
from daskw2v.simd import padded
from daskw2v.strategies.averaging import task_threads
from daskw2v.strategies.merge import find_merge_rule
from daskw2v.strategies.rotation import ROTATION, fits_memory
from daskw2v.strategies.rotations import Rotations

_POSITION = 2 * INT + 2 * LONG  # bytes of a text's position while it is read: code, token, position, bound
_BUILDING = 8 * LONG  # bytes a word of what an alias table is made from
_PAIR = 2 * INT
_BLOCK = 48 << 20  # rows that are being written or read, and checked

Sizes = dict[str, float]


def _alias(n_words: int) -> int:
    """Return the bytes of the table that negatives are drawn from."""
    return LONG * n_words


def _tree(n_words: int) -> int:
    """Return the bytes of a Huffman tree: starts, and of each way its nodes and turns."""
    return n_words * (LONG + (INT + 1) * (n_words.bit_length() + 3))


PREPARED: Mapping[Callable[..., object], tuple[str, Callable[[int], int]]] = {
    prepare_noise: ("table of negatives", _alias),
    prepare_tree: ("Huffman tree", _tree),
}


def _prepared(params: Params, n_words: int) -> Sizes:
    """Return what all kernels of a process read besides tables."""
    name, size = PREPARED[find_objective(params.objective).prepare]
    return {name: size(n_words)}


def _tables(params: Params, n_words: int) -> tuple[dict[str, int], dict[str, int]]:
    """Return the bytes of each table as Dask has it, and as kernels do: rows padded to whole cache lines."""
    rows = find_objective(params.objective).tables(params, n_words)
    width = params.vector_size
    return ({name: FLOAT * n * width for name, n in rows.items()},
            {name: FLOAT * n * padded(width) for name, n in rows.items()})  # fmt: skip


def _shards(text: Text) -> int:
    """Return the bytes of the shards that a reader has open: words' ids by their codes, and starts of sentences."""
    return min(OPEN_SHARDS, text.shards) * (INT * text.shard_types + text.shard_words // 2)


def averaging(params: Params, resources: Resources, text: Text, workers: Workers) -> Stage:
    """Return the memory of replicas: the model they start from, their own tables, the rows they return; and merging."""
    device = find_device(resources.device)
    held, own = _tables(params, text.vocabulary)
    tables, copies = sum(held.values()), sum(own.values())
    threads = task_threads([workers.threads] * workers.n, params, resources)
    tasks = min(1 if device.resource else workers.threads, -(-params.n_replicas // workers.n))
    # Rows that fill whole cache lines are returned as they lie; one thread takes one table out after the other
    taken = 0 if copies == tables else tables if threads > 1 else max(held.values())
    pieces = threads + 2 if device.resource else 1 if threads == 1 else 3
    share = tables / workers.n if params.n_replicas > 1 else 0.0
    velocity = share if find_merge_rule(params.merge).has_velocity else 0.0
    prepared = _prepared(params, text.vocabulary)
    kept: Sizes = {
        "model": tables,
        "velocity of the merge": velocity,
        **prepared,
        "counts and thresholds": 2 * LONG * text.vocabulary,
        "open shards": _shards(text),
    }
    training = {
        **kept,
        "tables of replicas": tasks * copies,
        "rows taken out of them": tasks * taken,
        "text": tasks * pieces * _POSITION * min(device.replica.positions, text.words),
    }
    # What is merged takes the place of what it came from, but for some blocks
    merging = {**kept, "trained replicas": tasks * tables, "blocks that are merged": share / 2}
    preparing = {"model": tables, "building what kernels read": (_BUILDING + 3 * LONG) * text.vocabulary}
    gpu: Sizes = {}
    if device.resource:
        buffers = 2 * 5 * (_POSITION - INT) * device.replica.positions // 4
        gpu = {"tables": copies, **prepared, "text": buffers}
    return Stage.of("train", training, merging if share else preparing, preparing, gpu=gpu)


def rotation(params: Params, resources: Resources, text: Text, workers: Workers) -> Stage:
    """Return the memory of meetings: a group of input and a group of output partitions each, and their pairs."""
    device = find_device(resources.device)
    held, own = (sum(tables.values()) for tables in _tables(params, text.vocabulary))
    n, fits = params.n_partitions, fits_memory(text.vocabulary, params.vector_size, workers.memory)
    n_groups = Rotations(params, text.words).n_turns
    tasks = min(1 if device.resource else workers.threads, -(-n_groups // workers.n))
    partition = held / 2 / n
    contexts = params.window + 1 if params.shrink_windows else 2 * params.window  # on the whole
    pairs = _PAIR * text.left * contexts / params.passes_per_epoch
    words = 2 * LONG * text.vocabulary / n_groups
    meeting: Sizes = {
        "partitions that meet": tasks * own / n_groups,
        "rows read or taken out": tasks * partition,
        "tables of negatives": tasks * words,
        "pairs": tasks * 2 * pairs / n**2 + min(KEPT_BYTES, pairs * params.epochs * params.passes_per_epoch),
    }
    # Of each group the rows before a meeting are let go after those that come of it are there
    model = {"model": held / workers.n, "groups that met": tasks * held / n_groups} if fits else {}
    dealing = {
        **({"model": held / workers.n} if fits else {}),
        "text": workers.threads * _POSITION * min(SEGMENT, text.words),
        "pairs": workers.threads * max(_PAIR * min(SEGMENT, text.left) * contexts, 2 * pairs / n),
        "open shards": _shards(text),
    }
    gpu = {"partitions": tasks * own / n_groups, "pairs": tasks * pairs / n**2} if device.resource else {}
    return Stage.of("train", {**model, **meeting}, dealing, gpu=gpu)


def columns(params: Params, resources: Resources, text: Text, workers: Workers) -> Stage:
    """Return the memory of parts: rows that move with their moments, rows that stay, columns of the matrix."""
    device = find_device(resources.device)
    held, own = _tables(params, text.vocabulary)
    tables, copies = sum(held.values()), sum(own.values())
    moments = 1 + MOMENTS[settled(params).optimizer or ""]
    alone = workers.n == 1
    largest = max(held.values())
    width = min(COLUMNS, params.context_size)
    panel = INT * width * text.vocabulary / workers.n
    # Two panels are kept while a third one is read; a step's columns are a copy
    panels = min(3, -(-params.context_size // COLUMNS)) * panel + panel * params.gather_every / width
    prepared = _prepared(params, text.vocabulary)
    if alone:
        rows: Sizes = {"rows": moments * tables, "moving rows": moments * copies, "rows taken out": moments * largest}
    else:
        part = largest / workers.n
        rows = {
            "rows": tables + (moments - 1) * tables / workers.n,
            "rows that stay": max(own.values()),
            "moving rows": moments * max(own.values()) / workers.n,
            "rows taken out": moments * part,
        }
    training = {**rows, "columns": panels, **prepared}
    band = min(BAND, text.vocabulary * params.context_size)
    building = {"contexts of a band": workers.threads * band * (LONG + 2 * INT)}
    gpu = {"tables": moments * copies if alone else max(own.values()) * (1 + moments / workers.n), **prepared,
           "columns": INT * params.gather_every * text.vocabulary / workers.n}  # fmt: skip
    return Stage.of("train", training, building, gpu=gpu if device.resource else {})


TRAINING: Mapping[str, Callable[[Params, Resources, Text, Workers], Stage]] = {
    "averaging": averaging,
    "rotation": rotation,
    "columns": columns,
}


def publish(params: Params, resources: Resources, text: Text, workers: Workers) -> Stage:
    """Return the memory of writing and checking the model, which workers still hold, and of its evaluation."""
    held, _ = _tables(params, text.vocabulary)
    stored = params.strategy == ROTATION.name and not fits_memory(text.vocabulary, params.vector_size, workers.memory)
    model = 0.0 if stored else sum(held.values()) / workers.n
    partition = max(held.values()) / params.n_partitions if stored else 0.0
    checked = 2 * _BLOCK if params.strategy == ROTATION.name else _BLOCK  # partitions are put in order
    writing = {"model": model, "rows written or checked": max(checked, workers.threads * max(_BLOCK, partition))}
    evaluating: Sizes = {}
    if any(resources.eval_sets.values()) and not stored:
        words = 4 * LONG * text.vocabulary
        evaluating = {"model": sum(held.values()), "input rows in one piece": 2 * held["input"], "words": words}
    return Stage.of("publish", writing, evaluating)
