"""The memory of a whole run, stage by stage.

Each strategy estimates training and publishing. The stages before these are the same for all strategies: reading text,
joining its phrases, and counting its words.
"""

from collections.abc import Mapping

from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.phrases.bigrams import BIGRAM, BUCKET_WORDS
from daskw2v.phrases.tasks import KEPT_MAPS, PIECE
from daskw2v.shards.dictionary import ENTRY_BYTES, room_for
from daskw2v.training.sizes.memory import FLOAT, INT, LONG, Estimate, MemoryPart, StageMemory, Workers
from daskw2v.training.sizes.text import Text
from daskw2v.training.strategies import find_strategy
from daskw2v.vocabulary.buckets import count_buckets
from daskw2v.vocabulary.order import PIECE_TYPES

_CLIENT = 250 << 20  # of a process with a Dask client
_SHARD = 4 << 10  # facts of a shard that the client holds
LETTERS = 8  # bytes of a distinct word
_COMPILED = 50 << 20  # that compiling the kernels of these stages leaves
_WRITING = 8 << 20  # chunks that a task compresses at a time
_ORDER = 56  # bytes a word that sorting takes: counts, groups, prefixes, and what lexsort needs
_DISTINCT = 0.4  # of a shard's bigrams; .26 were in 64 MB of Wikipedia
_SPEC = LETTERS + 2 * LONG  # bytes of a word with its place and its count


def estimate(params: Params, resources: Resources, text: Text, workers: Workers) -> Estimate:
    """Return the estimate of a run.

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
        encode(text, workers),
        *([phrases(text, workers)] if params.phrases else []),
        vocabulary(text, workers),
        run.train,
        run.publish,
    )
    vectors = text.vocabulary * (FLOAT * params.vector_size + LETTERS + 2 * LONG)
    client = (
        MemoryPart("process", _CLIENT),
        MemoryPart("shards", _SHARD * text.shards),
        MemoryPart("vectors it returns", vectors),
    )
    return Estimate(stages, client, run.notes)


def encode(text: Text, workers: Workers) -> StageMemory:
    """Return the memory of reading text: each thread has a block, and of it a shard."""
    tasks = min(workers.threads, text.blocks)
    slots, types = room_for(text.shard_types), text.shard_types
    growing = {"dictionary": _growing(slots), "codes": 2 * text.shard_words}  # half of them are there
    writing = {
        "dictionary": _table(slots, types),
        "codes": 2 * INT * text.shard_words,  # as they came, and in one piece
        "words in order": types * (LETTERS + 5 * LONG),
        "compression": _WRITING,
    }
    return StageMemory.of("encode", *(_times(tasks, parts) for parts in (growing, writing)), compiled=_COMPILED)


def phrases(text: Text, workers: Workers) -> StageMemory:
    """Return the memory of joining phrases: each thread counts a shard's bigrams, or a bucket's, or joins a shard's."""
    tasks, words = min(workers.threads, text.shards), text.shard_words
    distinct, maps = _DISTINCT * words, INT * KEPT_MAPS * text.shard_types
    merged = _DISTINCT * min(text.words, BUCKET_WORDS)
    counting = {"keys of bigrams": LONG * words, "bigrams": BIGRAM.itemsize * distinct, "runs": 2 * LONG * distinct}
    merging = {"bigrams": BIGRAM.itemsize * merged, "keys in order": 3 * LONG * merged, "counts": 2 * LONG * merged}
    joining = {
        "codes": 4 * INT * words,
        "dictionary": _table(room_for(text.shard_types), text.shard_types),
        "words": text.shard_types * (2 * LETTERS + 6 * LONG),
        "phrases": 2 * INT * PIECE,
        "compression": _WRITING,
    }
    return StageMemory.of(
        "phrases",
        *({"maps of shards": maps, **_times(tasks, parts)} for parts in (counting, merging, joining)),
        compiled=_COMPILED,
    )


def vocabulary(text: Text, workers: Workers) -> StageMemory:
    """Return the memory of merging dictionaries and putting words in order: each thread has a bucket, or a piece."""
    buckets = count_buckets(text.entries)
    entries, types, read = (-(-n // buckets) for n in (text.entries, text.types, text.shard_types))
    slots = room_for(max(types, read))
    merging = {
        "merged dictionary": _table(slots, types),
        "a shard's words": read * (_SPEC + LETTERS + INT),  # and once more with padding; codes
        "index": INT * entries,
    }
    growing = {
        "merged dictionary": _growing(slots),
        "a shard's words": read * (_SPEC + LETTERS),
        "index": INT * entries,
    }
    ordering = {"words": types * _SPEC, "sorting": types * _ORDER, "index": INT * entries}
    piece = min(PIECE_TYPES, text.vocabulary)
    ordering_piece = {"words": piece * _SPEC, "sorting": piece * _ORDER}
    tasks, pieces = min(workers.threads, buckets), min(workers.threads, -(-text.vocabulary // PIECE_TYPES))
    return StageMemory.of(
        "vocabulary",
        *(_times(tasks, parts) for parts in (merging, growing, ordering)),
        _times(pieces, ordering_piece),
        compiled=_COMPILED,
    )


def _table(slots: int, types: int) -> int:
    """Return the bytes of a dictionary: its table, and by code offsets, hashes and words."""
    return 2 * ENTRY_BYTES * slots + types * (2 * LONG + LETTERS)


def _growing(slots: int) -> int:
    """Return the bytes of a dictionary that has just grown to so many slots: the table half as large is still there."""
    return 2 * ENTRY_BYTES * (slots + slots // 2) + slots * (2 * LONG + LETTERS // 2)


def _times(n: int, parts: Mapping[str, float]) -> dict[str, float]:
    return {name: n * size for name, size in parts.items()}
