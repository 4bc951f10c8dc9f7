"""Shards' dictionaries merged exactly, one bucket of hashes at a time: any vocabulary, bounded memory.

Each build has a home of its own (a Store), so that two clients cannot disturb each other. Below it lie:

    shards.json               paths of the shards, in order
    listed                    the list of words, where one is given
    plan/<attempt>            from (buckets, shards) int64: where a shard's words in a bucket begin;
                              below (buckets, shards + 1) int64: how many words of the bucket come before it
    merged/<b>/<attempt>      words, offsets, counts: the distinct words of a bucket;
                              index int32: which of them each word of each shard is
    chosen/<attempt>          the final vocabulary, and ids_<b> int32: the id of a bucket's word, or -1
    maps/<b>/<attempt>        map int32: the id of each word of each shard, or -1
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from daskw2v.shards.dictionary import Dictionary, padded
from daskw2v.shards.layout import N_EDGES, read_edges, read_places, read_words
from daskw2v.shards.tasks import new_attempt
from daskw2v.storage import Store, create_array, read_array, write_array, write_rows

BUCKET_TYPES = 1 << 21  # dictionary entries merged by one task: some 200 MB
_MAP_CHUNK = 1 << 16  # a shard's slices are read one by one


def count_buckets(n_types: int) -> int:
    """Return how many buckets dictionaries of `n_types` words in all are cut into: a power of two."""
    buckets = 1
    while buckets < N_EDGES and n_types > buckets * BUCKET_TYPES:
        buckets *= 2
    return buckets


def plan_buckets(home: Store, work: Store, n_buckets: int) -> str:
    """Find out which words of which shard fall into which bucket; return the attempt."""
    paths = shard_paths(home)
    first = np.empty((n_buckets, len(paths)), np.int64)
    below = np.zeros((n_buckets, len(paths) + 1), np.int64)
    for s, path in enumerate(paths):
        edges = read_edges(work, path)[:: N_EDGES // n_buckets]
        first[:, s], below[:, s + 1] = edges[:-1], np.diff(edges)
    attempt = new_attempt()
    group = (home / "plan" / attempt).create_group()
    write_array(group, "from", first, chunk_rows=1)
    write_array(group, "below", np.cumsum(below, axis=1), chunk_rows=1)
    return attempt


def merge_bucket(home: Store, work: Store, plan: str, bucket: int) -> dict[str, Any]:
    """Merge the words of all shards that fall into a bucket; return attempt, n_types and n_tokens."""
    group = (home / "plan" / plan).open_group()
    first, below = (read_array(group, name, bucket, bucket + 1)[0] for name in ("from", "below"))
    merged, index = Dictionary(int(np.diff(below).max())), np.empty(int(below[-1]), np.int32)
    for s, path in enumerate(shard_paths(home)):
        size = int(below[s + 1] - below[s])
        if size:
            words, offsets, counts = read_words(work, path, int(first[s]), int(first[s]) + size)
            index[below[s] : below[s + 1]] = merged.encode(padded(words), offsets[:-1], offsets[1:], counts)
    counts, attempt = merged.counts(), new_attempt()
    group = (home / "merged" / str(bucket) / attempt).create_group()
    write_array(group, "words", merged.words)
    write_array(group, "offsets", merged.offsets)
    write_array(group, "counts", counts)
    write_array(group, "index", index)
    return {"attempt": attempt, "n_types": len(merged), "n_tokens": int(counts.sum())}


def resolve_bucket(home: Store, bucket: int, merged: str, chosen: str) -> str:
    """Write the id of each shard's words in a bucket; return the attempt."""
    ids = read_array((home / "chosen" / chosen).open_group(), f"ids_{bucket}")
    index = read_array((home / "merged" / str(bucket) / merged).open_group(), "index")
    attempt = new_attempt()
    group = (home / "maps" / str(bucket) / attempt).create_group()
    write_rows(create_array(group, "map", index.shape, np.int32, _MAP_CHUNK), 0, ids[index])
    return attempt


def read_map(home: Store, work: Store, plan: str, maps: Sequence[str], shard: int) -> npt.NDArray[np.int32]:
    """Read the id of each code of a shard, or -1, shape (n_types,) int32."""
    below = (home / "plan" / plan).open_group()["below"][:, shard : shard + 2]  # type: ignore[index]
    slices = [
        read_array((home / "maps" / str(bucket) / attempt).open_group(), "map", int(start), int(stop))
        for bucket, (attempt, (start, stop)) in enumerate(zip(maps, np.asarray(below), strict=True))
        if start < stop
    ]
    return np.concatenate(slices)[read_places(work, shard_paths(home)[shard])]


@lru_cache(maxsize=4)
def shard_paths(home: Store) -> list[str]:
    """Return the paths of the shards that a vocabulary counts."""
    # Kept: what lies at a home never changes, its key stands for the paths.
    paths: list[str] = (home.read_manifest("shards.json") or {})["paths"]
    return paths
