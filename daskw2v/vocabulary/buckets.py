"""The exact merge of the dictionaries of all shards, one bucket of hashes at a time, with bounded memory.

A bucket has the words whose hashes begin with the same bits. Each task writes to a folder of an attempt, whose random
name is passed to later steps. Each build has a folder of its own, so that two clients do not interfere. The folder
contains:

    shards.json               paths of the shards, in order
    listed                    the list of words, if there is one, as a shard, so that the list has buckets, too
    plan/<attempt>            from (buckets, shards) int64: index of a shard's first word in a bucket;
                              below (buckets, shards + 1) int64: number of the bucket's words in the shards before
    merged/<b>/<attempt>      words, offsets, counts: a bucket's words that may be kept, by (-count, bytes);
                              index int32: their index for each word of each shard, or -1
    pieces/<p>/<attempt>      words, offsets, counts: a range of ids of the vocabulary (see `order`);
                              ids int32: the id, or -1, of the words of `merged` in this range, bucket by bucket
    chosen/<attempt>          the final vocabulary
    maps/<b>/<attempt>        map int32: the id of each word of each shard, or -1
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np
import zarr

from daskw2v.errors import DamageError, VocabularyError, counted
from daskw2v.shards.dictionary import Dictionary, padded
from daskw2v.shards.layout import (
    N_EDGES,
    StoredWords,
    open_words,
    read_edges,
    read_word_indices,
    read_words,
    write_shard,
)
from daskw2v.shards.words import get_word, take_words
from daskw2v.store.arrays import open_array, read_array, write_array
from daskw2v.store.stage import new_attempt
from daskw2v.store.storage import Store
from daskw2v.types import Int32Array, Int64Array, UInt8Array
from daskw2v.vocabulary import order

BUCKET_TYPES = 1 << 21  # dictionary entries merged by one task, at least
_ENTRY = 100  # bytes of an entry, if all words differ
_MEMORY_SHARE = 0.25  # of a thread's memory, for the entries of its task
MISSING_SHOWN = 20  # words in a message
MAX_WORDS = 2**31 - 1  # ids are int32
STEPS = ("plan", "merge", "cut", "order", "join", "resolve")
_OPEN_MAPS, _OPEN_SHARDS = 64, 1 << 10  # arrays, and dictionaries, that are kept open
_NO_LIST = np.empty(0, np.int64), np.empty(0, np.uint8), np.zeros(1, np.int64)

RunStep = Callable[[str, Any, list[tuple[Any, ...]]], list[Any]]  # name of the step, function, arguments of each call


@dataclass(frozen=True)
class CountRules:
    """The rules that select the words of a vocabulary.

    Parameters
    ----------
    min_count
        Minimum number of occurrences of a word.
    limit
        Maximum number of words; the first by (-count, bytes) are kept. None for no limit.
    listed
        Whether only words of the stored list are kept.
    """

    min_count: int
    limit: int | None
    listed: bool


def choose_n_buckets(n_types: int, threads: int, memory: float) -> int:
    """Return the number of buckets for the dictionaries of all shards, a power of two.

    Each bucket reads a range of each shard's dictionary. So buckets are as few as memory and work for all threads let.

    Parameters
    ----------
    n_types
        Number of words of all dictionaries, added up.
    threads, memory
        Number of threads of the cluster, and bytes of a thread; infinity for no limit.
    """
    n = math.ceil(n_types / min(max_bucket_types(memory), max(BUCKET_TYPES, n_types / threads)))
    return min(N_EDGES, 1 << max(0, n - 1).bit_length())


def max_bucket_types(memory: float) -> float:
    """Return the largest number of dictionary entries that a thread with `memory` bytes merges, if hashes are even."""
    return max(BUCKET_TYPES, _MEMORY_SHARE * memory / _ENTRY)


def run_steps(folder: Store, work: Store, rules: CountRules, n_buckets: int, run_step: RunStep) -> dict[str, Any]:
    """Build a vocabulary in all steps of `STEPS`; return the values, by name, of fields of its `StoredVocabulary`.

    Parameters
    ----------
    folder, work
        Folder of the build, with its lists of shards and of words; and work directory of the shards.
    rules
        Rules that select the words.
    n_buckets
        Number of buckets, a power of two.
    run_step
        Calls the function of a step with the arguments of each call, in this thread or on the cluster, and returns the
        results in order.

    Raises
    ------
    VocabularyError
        If no word is kept, or more than int32 ids allow.
    """
    (plan,) = run_step("plan", plan_buckets, [(folder, work, n_buckets)])
    merged = run_step("merge", merge_bucket, [(folder, work, plan, b, rules) for b in range(n_buckets)])
    attempts, n_kept = [m["attempt"] for m in merged], [m["n_kept"] for m in merged]
    size = sum(n_kept) if rules.limit is None else min(rules.limit, sum(n_kept))
    if not size:
        raise _no_words_error(merged, rules)
    if size > MAX_WORDS:
        problem = f"{size} words are kept, more than {MAX_WORDS}."
        raise VocabularyError(problem, f"Raise min_count, or give max_final_vocab={MAX_WORDS}.")
    splitters = order.choose_splitters([key for m in merged for key in m["sample"]], sum(n_kept))
    cut_jobs = [(folder, b, attempts[b], n_kept[b], splitters) for b in range(n_buckets)]
    cuts = run_step("cut", order.cut_bucket, cut_jobs)
    bounds = np.stack(cuts, axis=1)  # (pieces + 1, buckets)
    sizes = np.diff(bounds, axis=0)
    starts = np.cumsum(sizes, axis=1) - sizes
    n_pieces = int(np.searchsorted(bounds[:-1].sum(axis=1), size))  # pieces that begin before the limit
    order_jobs = [(folder, p, attempts, bounds[p : p + 2], size) for p in range(n_pieces)]
    ordered = run_step("order", order.order_piece, order_jobs)
    pieces = [piece["attempt"] for piece in ordered]
    n_bytes = sum(piece["n_bytes"] for piece in ordered)
    (chosen,) = run_step("join", order.join_pieces, [(folder, pieces, size, n_bytes)])
    resolve_jobs = [(folder, b, attempts[b], pieces, bounds[:, b], starts[:, b]) for b in range(n_buckets)]
    missing = sorted(pair for m in merged for pair in m["missing_words"])
    return {
        "size": size,
        "total": sum(piece["n_tokens"] for piece in ordered),
        "raw_words": sum(m["n_tokens"] for m in merged),
        "raw_types": sum(m["n_types"] for m in merged),
        "missing": sum(m["missing"] for m in merged),
        "missing_words": [word for _, word in missing[:MISSING_SHOWN]],
        "plan": plan,
        "chosen": chosen,
        "maps": run_step("resolve", resolve_bucket, resolve_jobs),
    }


def run_step_locally(_: str, function: Any, jobs: list[tuple[Any, ...]]) -> list[Any]:
    """Call the function of a step with the arguments of each job, in this thread; return the results in order."""
    return [function(*arguments) for arguments in jobs]


def plan_buckets(folder: Store, work: Store, n_buckets: int) -> str:
    """Write the range of each shard's dictionary that each bucket has; return the name of the attempt.

    Parameters
    ----------
    folder, work
        Folder of the build, and work directory of the shards.
    n_buckets
        Number of buckets, a power of two.
    """
    paths = read_shard_paths(folder)
    first = np.empty((n_buckets, len(paths)), np.int64)
    below = np.zeros((n_buckets, len(paths) + 1), np.int64)
    for s, path in enumerate(paths):
        edges = read_edges(work, path)[:: N_EDGES // n_buckets]
        first[:, s], below[:, s + 1] = edges[:-1], np.diff(edges)
    attempt = new_attempt()
    group = (folder / "plan" / attempt).create_group()
    write_array(group, "from", first, chunk_rows=1)
    write_array(group, "below", np.cumsum(below, axis=1, out=below), chunk_rows=1)
    return attempt


def write_list(folder: Store, words: Sequence[str]) -> None:
    """Write the list of words to keep, which are distinct, into the folder of a build."""
    encoded = [word.encode() for word in words]
    offsets = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    listed = Dictionary(len(words))
    codes = listed.encode(padded(b"".join(encoded)), offsets[:-1], offsets[1:])
    write_shard(folder / "listed", [codes], np.zeros(1, np.int64), listed)


def merge_bucket(folder: Store, work: Store, plan: str, bucket: int, rules: CountRules) -> dict[str, Any]:
    """Merge the words of all shards in one bucket, and write those that the rules may keep, sorted by (-count, bytes).

    Parameters
    ----------
    folder, work
        Folder of the build, and work directory of the shards.
    plan
        Attempt of `plan_buckets`.
    bucket
        Number of the bucket.
    rules
        Rules that select the words.

    Returns
    -------
    dict
        attempt; n_types, n_tokens and largest (count) of the bucket; n_kept and sample (keys, as in `order`) of the
        words that may be kept; missing and missing_words: number of listed words that do not occur, and the first of
        these as pairs of index in the list and word.
    """
    n_buckets = open_array((folder / "plan" / plan).open_group(), "below").shape[0]
    indices, words, offsets = _read_list(folder, bucket, n_buckets) if rules.listed else _NO_LIST
    words, offsets, counts, index = _merge(folder, work, plan, bucket, words, offsets)
    eligible = counts[: len(indices)] if rules.listed else counts  # the list's words come first
    missing = np.flatnonzero(eligible == 0)
    result = {
        "n_types": int(np.count_nonzero(counts)),
        "n_tokens": int(counts.sum()),
        "largest": int(counts.max(initial=0)),
        "missing": len(missing),
        "missing_words": [(int(indices[i]), get_word(words, offsets, i).decode()) for i in missing[:MISSING_SHOWN]],
    }
    kept = np.flatnonzero(eligible >= rules.min_count)
    kept = kept[order.order_words(*take_words(words, offsets, kept), counts[kept])[: rules.limit]]
    kept_index = np.full(len(counts), -1, np.int32)
    kept_index[kept] = np.arange(len(kept), dtype=np.int32)
    (words, offsets), counts, index = take_words(words, offsets, kept), counts[kept], kept_index[index]
    attempt = new_attempt()
    group = (folder / "merged" / str(bucket) / attempt).create_group()
    write_array(group, "words", words)
    write_array(group, "offsets", offsets, chunk_rows=order.SLICE_CHUNK)
    write_array(group, "counts", counts, chunk_rows=order.SLICE_CHUNK)
    write_array(group, "index", index)
    keys = [(-int(counts[i]), get_word(words, offsets, i)) for i in order.sample_indices(bucket, n_buckets, len(kept))]
    return {**result, "attempt": attempt, "n_kept": len(kept), "sample": keys}


def _merge(
    folder: Store, work: Store, plan: str, bucket: int, words: UInt8Array, offsets: Int64Array
) -> tuple[UInt8Array, Int64Array, Int64Array, Int32Array]:
    """Merge a bucket's words of all shards into a list of distinct words, which come first, also if they do not occur.

    Parameters
    ----------
    folder, work, plan, bucket
        As in `merge_bucket`.
    words, offsets
        The list, as flat words (see `shards.words`); it may be empty.

    Returns
    -------
    words, offsets
        The u merged words, as flat words.
    counts
        Occurrences of each word, shape (u,) int64.
    index
        Index of the merged word of each of the shards' words, shard by shard, int32.
    """
    group = (folder / "plan" / plan).open_group()
    first, below = (read_array(group, name, bucket, bucket + 1)[0] for name in ("from", "below"))
    merged = Dictionary(max(len(offsets), int(np.diff(below).max())))
    merged.encode(padded(words), offsets[:-1], offsets[1:], np.zeros(len(offsets) - 1, np.int64))
    index = np.empty(int(below[-1]), np.int32)
    for s, path in enumerate(read_shard_paths(folder)):
        size = int(below[s + 1] - below[s])
        if size:
            words, offsets, counts = _open_words(folder, work, path).read(int(first[s]), int(first[s]) + size)
            index[below[s] : below[s + 1]] = merged.encode(padded(words), offsets[:-1], offsets[1:], counts)
    return merged.words, merged.offsets, merged.counts(), index


@lru_cache(maxsize=_OPEN_SHARDS)
def _open_words(folder: Store, work: Store, path: str) -> StoredWords:
    """Open the dictionary of a shard, once for all buckets of the build in `folder` that a process merges."""
    return open_words(work, path)


def _read_list(folder: Store, bucket: int, n_buckets: int) -> tuple[Int64Array, UInt8Array, Int64Array]:
    """Read the listed words of one of `n_buckets` buckets: indices in the list, ascending; bytes; offsets."""
    start, stop = read_edges(folder, "listed")[:: N_EDGES // n_buckets][bucket : bucket + 2].tolist()
    word_indices = read_word_indices(folder, "listed")
    indices = np.flatnonzero((start <= word_indices) & (word_indices < stop))
    words, offsets, _ = read_words(folder, "listed", start, stop)
    return indices, *take_words(words, offsets, word_indices[indices].astype(np.int64) - start)


def resolve_bucket(
    folder: Store, bucket: int, merged: str, pieces: Sequence[str], bounds: Int64Array, starts: Int64Array
) -> str:
    """Write the ids of each shard's words in one bucket; return the name of the attempt.

    Parameters
    ----------
    folder, pieces, bounds, starts
        As in `order.read_ids`.
    bucket, merged
        Number of the bucket, and its attempt of `merge_bucket`.
    """
    ids = order.read_ids(folder, pieces, bounds, starts)
    index = read_array((folder / "merged" / str(bucket) / merged).open_group(), "index")
    attempt = new_attempt()
    group = (folder / "maps" / str(bucket) / attempt).create_group()
    write_array(group, "map", ids[index], chunk_rows=order.SLICE_CHUNK)
    return attempt


class Maps:
    """A reader of the maps from shards' codes to ids. Arrays stay open, as opening one takes longer than reading it.

    Parameters
    ----------
    folder
        Folder of the build.
    plan, maps
        The attempt of the build's plan, and the attempt of each bucket's map.
    """

    def __init__(self, folder: Store, plan: str, maps: Sequence[str]) -> None:
        self._folder = folder
        self._below = cache(lambda: open_array((folder / "plan" / plan).open_group(), "below"))
        groups = [folder / "maps" / str(bucket) / attempt for bucket, attempt in enumerate(maps)]
        self._map = lru_cache(_OPEN_MAPS)(lambda bucket: open_array(groups[bucket].open_group(), "map"))

    def read(self, path: str, shard: zarr.Group) -> Int32Array:
        """Read the id of each code of a shard, -1 for words that the vocabulary lacks, shape (n_types,) int32.

        Parameters
        ----------
        path, shard
            Path of the shard below the work directory, and its open group.
        """
        number = shard_numbers(self._folder)[path]
        below = self._below()[:, number : number + 2].tolist()
        slices = [self._map(bucket)[start:stop] for bucket, (start, stop) in enumerate(below) if start < stop]
        ids: Int32Array = np.concatenate(slices)[read_array(shard, "places")]
        return ids


@lru_cache(maxsize=4)
def shard_numbers(folder: Store) -> dict[str, int]:
    """Return the index of each shard in `read_shard_paths`, by its path; argument and errors are the same as there."""
    return {path: number for number, path in enumerate(read_shard_paths(folder))}


@lru_cache(maxsize=4)
def read_shard_paths(folder: Store) -> list[str]:
    """Return the paths of the shards that a vocabulary was counted from, in the order of the text.

    Parameters
    ----------
    folder
        Folder of the vocabulary's build.

    Raises
    ------
    DamageError
        If the list of shards is missing or damaged.
    """
    # It can be cached: the folder's name depends on the paths
    manifest = folder.read_manifest("shards.json")
    if manifest is None:
        raise DamageError.of(f"{folder.url}/shards.json", "is missing")
    paths: list[str] = manifest["paths"]
    return paths


def _no_words_error(merged: Sequence[dict[str, Any]], rules: CountRules) -> VocabularyError:
    """Return the error for rules that keep no word; `merged` are the results of `merge_bucket`."""
    if rules.listed:
        problem = f"None of the {counted(sum(m['missing'] for m in merged), 'word')} of the list occurs in the corpus."
        return VocabularyError(problem, "Compare the list's spelling and case with the tokenizer's.")
    return VocabularyError(
        f"No word occurs min_count={rules.min_count} times; the most frequent one occurs "
        f"{counted(max(m['largest'] for m in merged), 'time')}.",
        "Lower min_count or give more text.",
    )
