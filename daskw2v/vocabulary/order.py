"""Ids by (-count, bytes) for any number of words, in bounded memory: a sample sort.

The words of each bucket are sorted (see `buckets`), without a Python object for each word. Splitters, chosen from a
sample, cut all buckets into pieces of about `PIECE_TYPES` words. The first id of a piece is the number of words before
the piece in all buckets. Therefore one task sorts each piece, and one more task concatenates all pieces.
"""

from bisect import bisect_left
from collections.abc import Sequence
from functools import partial
from math import isqrt
from typing import Any

import numpy as np

from daskw2v.kernels.jit import kernel
from daskw2v.shards.layout import read_words
from daskw2v.shards.words import get_word, take_words
from daskw2v.store.arrays import create_array, read_array, write_array
from daskw2v.store.stage import new_attempt
from daskw2v.store.storage import Store
from daskw2v.types import Int32Array, Int64Array, UInt8Array, UInt64Array
from daskw2v.vocabulary.vocabulary import Vocabulary

PIECE_TYPES = 1 << 21  # words sorted by one task: about 300 MB
_SAMPLES = 8  # with 8, sizes of pieces differ by 5 %; more samples make them more even
SLICE_CHUNK = 1 << 16  # chunk of arrays that are read in slices

Key = tuple[int, bytes]  # sort key of a word: -count and bytes


def sample_indices(bucket: int, n_buckets: int, n_words: int) -> range:
    """Return the indices of the words that represent a bucket of `n_words` words in the sample, at equal distances.

    The first index differs from bucket to bucket. Otherwise, since buckets are alike, all buckets would sample the same
    parts of the vocabulary.
    """
    # An estimate from the samples of n buckets has an error of about sqrt(n) steps.
    step = max(1, PIECE_TYPES // (_SAMPLES * isqrt(n_buckets)))
    return range(bucket * step // n_buckets, n_words, step)


def choose_splitters(sample: list[Key], n_words: int) -> list[Key]:
    """Return the first key of each piece but the first piece, ascending.

    Parameters
    ----------
    sample
        Keys of the sampled words of all buckets.
    n_words
        Number of words in all buckets.
    """
    n_pieces, sample = -(-n_words // PIECE_TYPES), sorted(sample)
    return [sample[i] for i in sorted({piece * len(sample) // n_pieces for piece in range(1, n_pieces)} - {0})]


def cut_bucket(folder: Store, bucket: int, merged: str, n_words: int, splitters: Sequence[Key]) -> Int64Array:
    """Return the bounds of the pieces among a bucket's words, shape (pieces + 1,) int64.

    Parameters
    ----------
    folder
        Folder of the build.
    bucket, merged, n_words
        Number of the bucket, its attempt of `merge_bucket`, and the number of its words.
    splitters
        Result of `choose_splitters`.
    """
    bounds = np.array([0, *(0 for _ in splitters), n_words])
    if not splitters:
        return bounds
    words, offsets, counts = read_words(folder, f"merged/{bucket}/{merged}", 0, n_words)
    negated = -counts  # ascending
    for piece, (key, word) in enumerate(splitters, 1):
        begin, end = np.searchsorted(negated, key), np.searchsorted(negated, key, "right")
        bounds[piece] = begin + bisect_left(range(begin, end), word, key=partial(get_word, words, offsets))
    return bounds


def order_piece(folder: Store, piece: int, merged: Sequence[str], bounds: Int64Array, size: int) -> dict[str, Any]:
    """Sort the words of a piece by (-count, bytes), and write them with their ids.

    Parameters
    ----------
    folder
        Folder of the build.
    piece
        Number of the piece.
    merged
        Attempt of `merge_bucket` of each bucket.
    bounds
        Bounds of the piece in each bucket, shape (2, buckets).
    size
        Number of words in the vocabulary; words with ids of `size` or more are dropped.

    Returns
    -------
    dict
        attempt; n_types, n_bytes and n_tokens (occurrences) of the piece's words that are kept.
    """
    slices = [
        read_words(folder, f"merged/{bucket}/{merged[bucket]}", start, stop)
        for bucket, (start, stop) in enumerate(bounds.T.tolist())
        if start < stop
    ]
    words, counts = (np.concatenate([part[i] for part in slices]) for i in (0, 2))
    offsets = np.cumsum(np.concatenate([[0], *(np.diff(part[1]) for part in slices)]), dtype=np.int64)
    del slices
    first = int(bounds[0].sum())
    order = order_words(words, offsets, counts)[: size - first]
    ids = np.full(len(counts), -1, np.int32)
    ids[order] = np.arange(first, first + len(order), dtype=np.int32)
    words, offsets = take_words(words, offsets, order)
    counts, attempt = counts[order], new_attempt()
    group = (folder / "pieces" / str(piece) / attempt).create_group()
    Vocabulary(words, offsets, counts).save(group)
    write_array(group, "ids", ids, chunk_rows=SLICE_CHUNK)
    return {"attempt": attempt, "n_types": len(order), "n_bytes": len(words), "n_tokens": int(counts.sum())}


def join_pieces(folder: Store, pieces: Sequence[str], n_types: int, n_bytes: int) -> str:
    """Write the vocabulary, which is all pieces one after another; return the name of the attempt.

    Parameters
    ----------
    folder
        Folder of the build.
    pieces
        Attempt of `order_piece` of each piece.
    n_types, n_bytes
        Number of words of all pieces, and of their bytes.
    """
    attempt = new_attempt()
    group = (folder / "chosen" / attempt).create_group()
    # A single task writes, as pieces do not end at bounds of chunks
    words = create_array(group, "words", (n_bytes,), np.uint8, held=True)
    offsets = create_array(group, "offsets", (n_types + 1,), np.int64, held=True)
    counts = create_array(group, "counts", (n_types,), np.int64, held=True)
    n_types = n_bytes = 0
    for number, name in enumerate(pieces):
        part = Vocabulary.load((folder / "pieces" / str(number) / name).open_group())
        words[n_bytes : n_bytes + len(part.data)] = part.data
        offsets[n_types : n_types + len(part) + 1] = part.offsets + n_bytes
        counts[n_types : n_types + len(part)] = part.counts
        n_types, n_bytes = n_types + len(part), n_bytes + len(part.data)
    for array in (words, offsets, counts):
        array.finish()
    return attempt


def read_ids(folder: Store, pieces: Sequence[str], bounds: Int64Array, starts: Int64Array) -> Int32Array:
    """Read the ids of a bucket's n words, -1 for words that the limit drops, and one more -1, shape (n + 1,) int32.

    Parameters
    ----------
    folder
        Folder of the build.
    pieces
        Attempt of `order_piece` of each piece that begins before the limit.
    bounds, starts
        Bounds of all pieces among the bucket's words, shape (pieces + 1,); and index of the bucket's first word in each
        piece, shape (pieces,).
    """
    ids = np.full(bounds[-1] + 1, -1, np.int32)
    for piece, name in enumerate(pieces):
        size = bounds[piece + 1] - bounds[piece]
        if size:
            group = (folder / "pieces" / str(piece) / name).open_group()
            ids[bounds[piece] : bounds[piece + 1]] = read_array(group, "ids", starts[piece], starts[piece] + size)
    return ids


@kernel
def _fill_prefixes(
    words: UInt8Array, offsets: Int64Array, indices: Int64Array, skip: int, prefixes: UInt64Array, lengths: UInt8Array
) -> None:
    """Fill in the bytes skip .. skip + 7 of the words at `indices`, and how many of these bytes each word has, 0 to 8.

    Parameters
    ----------
    words, offsets
        Bytes (n,) and offsets (u + 1,) of u words.
    indices
        Indices of k words, shape (k,).
    skip
        Number of bytes before those that are read.
    prefixes, lengths
        Filled: the bytes as big-endian numbers, with zeros behind the end of a word; and their number; shape (k,).
    """
    for i in range(len(indices)):
        begin, end = offsets[indices[i]] + skip, offsets[indices[i] + 1]
        length = max(0, min(8, end - begin))
        prefix = np.uint64(0)
        for k in range(8):
            byte = words[begin + k] if k < length else 0
            prefix = (prefix << np.uint64(8)) | np.uint64(byte)
        prefixes[i], lengths[i] = prefix, length


def order_words(words: UInt8Array, offsets: Int64Array, counts: Int64Array) -> Int64Array:
    """Return the indices that sort words by falling count, and words of equal count by bytes, shape (u,) int64.

    Parameters
    ----------
    words, offsets
        Bytes (n,) uint8 and offsets (u + 1,) int64 of u distinct words.
    counts
        Occurrences of each word, shape (u,) int64.
    """
    order = np.argsort(-counts, kind="stable")
    group = -counts[order]
    # Runs of words with equal bytes up to `skip` are sorted by their next 8 bytes, until no run remains
    tied, skip = np.arange(len(order)), 0
    while len(tied):
        prefixes, lengths = np.empty(len(tied), np.uint64), np.empty(len(tied), np.uint8)
        _fill_prefixes(words, offsets, order[tied], skip, prefixes, lengths)
        # The length distinguishes padding from zeros of the word. Runs keep their order, as group is the first key
        within = np.lexsort((lengths, prefixes, group))
        order[tied] = order[tied][within]
        group, prefixes, lengths = group[within], prefixes[within], lengths[within]
        same = (np.diff(group) == 0) & (np.diff(prefixes) == 0) & (lengths[1:] == 8) & (lengths[:-1] == 8)
        again = np.append(same, False) | np.append(False, same)
        run = np.cumsum(np.append(True, ~same))
        tied, group, skip = tied[again], run[again], skip + 8
    return order
