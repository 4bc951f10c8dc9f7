"""The exact merge of the dictionaries of all shards, one bucket of hashes at a time, with bounded memory.

Each build has its own folder, `home`, so that two clients do not interfere. It contains:

    shards.json               paths of the shards, in order
    listed                    the list of words, if any, as a shard, so that it has buckets, too
    plan/<attempt>            from (buckets, shards) int64: index of a shard's first word in a bucket;
                              below (buckets, shards + 1) int64: number of the bucket's words in the shards before
    merged/<b>/<attempt>      words, offsets, counts: a bucket's words that may be kept, by (-count, bytes);
                              index int32: their index for each word of each shard, or -1
    pieces/<p>/<attempt>      words, offsets, counts: a range of ids of the vocabulary (see `order`);
                              ids int32: the id, or -1, of the words of `merged` in this range, bucket by bucket
    chosen/<attempt>          the final vocabulary
    maps/<b>/<attempt>        map int32: the id of each word of each shard, or -1
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np
import zarr

from daskw2v.errors import DamageError, VocabularyError, counted
from daskw2v.shards.dictionary import Dictionary, padded
from daskw2v.shards.layout import N_EDGES, read_edges, read_places, read_words, write_shard
from daskw2v.shards.words import take_words, word_at
from daskw2v.store.arrays import open_array, read_array, write_array
from daskw2v.store.stage import new_attempt
from daskw2v.store.storage import Store
from daskw2v.types import Int32Array, Int64Array, UInt8Array
from daskw2v.vocabulary import order

BUCKET_TYPES = 1 << 21  # dictionary entries merged by one task: about 200 MB
MISSING_SHOWN = 20
MOST_WORDS = 2**31 - 1  # ids are int32
STEPS = ("plan", "merge", "cut", "order", "join", "resolve")
_OPEN_MAPS = 64  # arrays kept open
_NO_LIST = np.empty(0, np.int64), np.empty(0, np.uint8), np.zeros(1, np.int64)

Call = Callable[[str, Any, list[tuple[Any, ...]]], list[Any]]  # stage, function, arguments of each call


@dataclass(frozen=True)
class CountRules:
    """Rules for the words to keep.

    Parameters
    ----------
    min_count
        Fewest occurrences.
    limit
        Most words, the first by (-count, bytes); None for no limit.
    listed
        Whether only words of the stored list are kept.
    """

    min_count: int
    limit: int | None
    listed: bool


def count_buckets(n_types: int) -> int:
    """Return the number of buckets for dictionaries with `n_types` words in total, a power of two."""
    buckets = 1
    while buckets < N_EDGES and n_types > buckets * BUCKET_TYPES:
        buckets *= 2
    return buckets


def take_steps(home: Store, work: Store, rules: CountRules, n_buckets: int, call: Call) -> dict[str, Any]:
    """Take all steps; return the fields of `StoredVocabulary`.

    Parameters
    ----------
    home, work
        Folder of the vocabulary, and work directory of the shards.
    rules
        Rules for the words to keep.
    n_buckets
        Number of buckets, a power of two.
    call
        Takes a step: calls a function with the arguments of each job, here or on the cluster.

    Raises
    ------
    VocabularyError
        If no word is kept, or more than int32 ids allow.
    """
    (plan,) = call("plan", plan_buckets, [(home, work, n_buckets)])
    merged = call("merge", merge_bucket, [(home, work, plan, b, rules) for b in range(n_buckets)])
    names, kept = [m["attempt"] for m in merged], [m["n_kept"] for m in merged]
    size = sum(kept) if rules.limit is None else min(rules.limit, sum(kept))
    if not size:
        raise _nothing_left(merged, rules)
    if size > MOST_WORDS:
        raise VocabularyError(
            f"{size} words are kept, more than {MOST_WORDS}.", f"Raise min_count, or give max_final_vocab={MOST_WORDS}."
        )
    splitters = order.choose_splitters([key for m in merged for key in m["sample"]], sum(kept))
    cuts = call("cut", order.cut_bucket, [(home, b, names[b], kept[b], splitters) for b in range(n_buckets)])
    bounds = np.stack(cuts, axis=1)  # (pieces + 1, buckets)
    sizes = np.diff(bounds, axis=0)
    starts = np.cumsum(sizes, axis=1) - sizes
    n_pieces = int(np.searchsorted(bounds[:-1].sum(axis=1), size))  # pieces that begin before the limit
    ordered = call("order", order.order_piece, [(home, p, names, bounds[p : p + 2], size) for p in range(n_pieces)])
    parts = [part["attempt"] for part in ordered]
    (chosen,) = call("join", order.join_pieces, [(home, parts, size, sum(part["n_bytes"] for part in ordered))])
    jobs = [(home, b, names[b], parts, bounds[:, b], starts[:, b]) for b in range(n_buckets)]
    missing = sorted(pair for m in merged for pair in m["missing_words"])
    return {
        "size": size,
        "total": sum(part["n_tokens"] for part in ordered),
        "raw_words": sum(m["n_tokens"] for m in merged),
        "raw_types": sum(m["n_types"] for m in merged),
        "missing": sum(m["missing"] for m in merged),
        "missing_words": [word for _, word in missing[:MISSING_SHOWN]],
        "plan": plan,
        "chosen": chosen,
        "maps": call("resolve", resolve_bucket, jobs),
    }


def call_here(_: str, function: Any, jobs: list[tuple[Any, ...]]) -> list[Any]:
    """Take a step in this thread: call the function with each job's arguments."""
    return [function(*arguments) for arguments in jobs]


def plan_buckets(home: Store, work: Store, n_buckets: int) -> str:
    """Find the range of each shard's words in each bucket; return the attempt."""
    paths = shard_paths(home)
    first = np.empty((n_buckets, len(paths)), np.int64)
    below = np.zeros((n_buckets, len(paths) + 1), np.int64)
    for s, path in enumerate(paths):
        edges = read_edges(work, path)[:: N_EDGES // n_buckets]
        first[:, s], below[:, s + 1] = edges[:-1], np.diff(edges)
    attempt = new_attempt()
    group = (home / "plan" / attempt).create_group()
    write_array(group, "from", first, chunk_rows=1)
    write_array(group, "below", np.cumsum(below, axis=1, out=below), chunk_rows=1)
    return attempt


def write_list(home: Store, words: Sequence[str]) -> None:
    """Write the list of words to keep, without duplicates."""
    encoded = [word.encode() for word in words]
    offsets = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    listed = Dictionary(len(words))
    codes = listed.encode(padded(b"".join(encoded)), offsets[:-1], offsets[1:])
    write_shard(home / "listed", [codes], np.zeros(1, np.int64), listed)


def merge_bucket(home: Store, work: Store, plan: str, bucket: int, rules: CountRules) -> dict[str, Any]:
    """Merge the words of all shards in a bucket, and sort the words that may be kept.

    Returns
    -------
    dict
        attempt; n_types, n_tokens and largest count of the bucket; n_kept and a sample (keys) of the words that may be
        kept; missing and missing_words: number of listed words that do not occur, and the first of them with numbers.
    """
    n_buckets = open_array((home / "plan" / plan).open_group(), "below").shape[0]
    numbers, words, offsets = _read_list(home, bucket, n_buckets) if rules.listed else _NO_LIST
    words, offsets, counts, index = _merge(home, work, plan, bucket, words, offsets)
    listed = counts[: len(numbers)] if rules.listed else counts  # the list's words come first
    missing = np.flatnonzero(listed == 0)
    result = {
        "n_types": int(np.count_nonzero(counts)),
        "n_tokens": int(counts.sum()),
        "largest": int(counts.max(initial=0)),
        "missing": len(missing),
        "missing_words": [(int(numbers[i]), word_at(words, offsets, i).decode()) for i in missing[:MISSING_SHOWN]],
    }
    kept = np.flatnonzero(listed >= rules.min_count)
    kept = kept[order.order_words(*take_words(words, offsets, kept), counts[kept])[: rules.limit]]
    places = np.full(len(counts), -1, np.int32)
    places[kept] = np.arange(len(kept), dtype=np.int32)
    (words, offsets), counts, index = take_words(words, offsets, kept), counts[kept], places[index]
    attempt = new_attempt()
    group = (home / "merged" / str(bucket) / attempt).create_group()
    write_array(group, "words", words)
    write_array(group, "offsets", offsets, chunk_rows=order.SLICE_CHUNK)
    write_array(group, "counts", counts, chunk_rows=order.SLICE_CHUNK)
    write_array(group, "index", index)
    sample = [(-int(counts[i]), word_at(words, offsets, i)) for i in order.sample_places(bucket, n_buckets, len(kept))]
    return {**result, "attempt": attempt, "n_kept": len(kept), "sample": sample}


def _merge(
    home: Store, work: Store, plan: str, bucket: int, words: UInt8Array, offsets: Int64Array
) -> tuple[UInt8Array, Int64Array, Int64Array, Int32Array]:
    """Merge a bucket's words of all shards with distinct words; return words, offsets, counts and index."""
    group = (home / "plan" / plan).open_group()
    first, below = (read_array(group, name, bucket, bucket + 1)[0] for name in ("from", "below"))
    merged = Dictionary(max(len(offsets), int(np.diff(below).max())))
    merged.encode(padded(words), offsets[:-1], offsets[1:], np.zeros(len(offsets) - 1, np.int64))
    index = np.empty(int(below[-1]), np.int32)
    for s, path in enumerate(shard_paths(home)):
        size = int(below[s + 1] - below[s])
        if size:
            words, offsets, counts = read_words(work, path, int(first[s]), int(first[s]) + size)
            index[below[s] : below[s + 1]] = merged.encode(padded(words), offsets[:-1], offsets[1:], counts)
    return merged.words, merged.offsets, merged.counts(), index


def _read_list(home: Store, bucket: int, n_buckets: int) -> tuple[Int64Array, UInt8Array, Int64Array]:
    """Read the listed words of a bucket: their numbers in the list, ascending, and the words."""
    start, stop = read_edges(home, "listed")[:: N_EDGES // n_buckets][bucket : bucket + 2].tolist()
    places = read_places(home, "listed")
    numbers = np.flatnonzero((start <= places) & (places < stop))
    words, offsets, _ = read_words(home, "listed", start, stop)
    return numbers, *take_words(words, offsets, places[numbers].astype(np.int64) - start)


def resolve_bucket(
    home: Store, bucket: int, merged: str, pieces: Sequence[str], bounds: Int64Array, starts: Int64Array
) -> str:
    """Write the ids of each shard's words in a bucket; return the attempt. Further arguments are as in `read_ids`."""
    ids = order.read_ids(home, pieces, bounds, starts)
    index = read_array((home / "merged" / str(bucket) / merged).open_group(), "index")
    attempt = new_attempt()
    group = (home / "maps" / str(bucket) / attempt).create_group()
    write_array(group, "map", ids[index], chunk_rows=order.SLICE_CHUNK)
    return attempt


class Maps:
    """A reader of the ids of the codes of shards. Arrays stay open, as opening one takes longer than reading.

    Parameters
    ----------
    home
        Folder of the build.
    plan, maps
        The attempts of its plan, and of each bucket's map.
    """

    def __init__(self, home: Store, plan: str, maps: Sequence[str]) -> None:
        self._home = home
        self._below = cache(lambda: open_array((home / "plan" / plan).open_group(), "below"))
        groups = [home / "maps" / str(bucket) / attempt for bucket, attempt in enumerate(maps)]
        self._map = lru_cache(_OPEN_MAPS)(lambda bucket: open_array(groups[bucket].open_group(), "map"))

    def read(self, path: str, shard: zarr.Group) -> Int32Array:
        """Read the id of each code of the shard at a path of the work directory, or -1, shape (n_types,)."""
        number = shard_numbers(self._home)[path]
        below = self._below()[:, number : number + 2].tolist()
        slices = [self._map(bucket)[start:stop] for bucket, (start, stop) in enumerate(below) if start < stop]
        ids: Int32Array = np.concatenate(slices)[read_array(shard, "places")]
        return ids


@lru_cache(maxsize=4)
def shard_numbers(home: Store) -> dict[str, int]:
    """Return the numbers of a vocabulary's shards, by path."""
    return {path: number for number, path in enumerate(shard_paths(home))}


@lru_cache(maxsize=4)
def shard_paths(home: Store) -> list[str]:
    """Return the paths of a vocabulary's shards."""
    # It can be cached: the folder's name depends on the paths.
    manifest = home.read_manifest("shards.json")
    if manifest is None:
        raise DamageError.of(f"{home.url}/shards.json", "is missing")
    paths: list[str] = manifest["paths"]
    return paths


def _nothing_left(merged: Sequence[dict[str, Any]], rules: CountRules) -> VocabularyError:
    if rules.listed:
        return VocabularyError(
            f"None of the {counted(sum(m['missing'] for m in merged), 'word')} of the list occurs in the corpus.",
            "Compare the list's spelling and case with the tokenizer's.",
        )
    return VocabularyError(
        f"No word occurs min_count={rules.min_count} times; the most frequent one occurs "
        f"{counted(max(m['largest'] for m in merged), 'time')}.",
        "Lower min_count or give more text.",
    )
