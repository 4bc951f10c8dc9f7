"""The tasks of a pass that joins bigrams.

Each task has its own folder below that of the pass:

    count/<shard>      bigrams: BIGRAMs of a shard, by bucket
    merge/<bucket>     pairs (n, 2) int32, counts (n, 3) int64: ids of the bigrams of a bucket that may be phrases, and
                       counts of the bigram, of its first and of its second word
    choose/0           the phrases, in pieces: words and offsets (2 n words, in pairs), counts int64, scores float64,
                       pairs (n, 2) int32 of ids
    join/<shard>       a shard of the new corpus

The folder contains attempts, and a manifest that names the valid attempt. Results depend only on the text and on where
its shards begin. Therefore finished tasks stay valid when results of other tasks are lost.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np

from daskw2v.phrases import bigrams
from daskw2v.phrases.bigrams import NOTHING, WordList
from daskw2v.phrases.score import BigramTotals, PhraseRules
from daskw2v.shards import layout
from daskw2v.shards.layout import Corpus
from daskw2v.shards.words import take_words
from daskw2v.store.arrays import read_array
from daskw2v.store.partfile import read_part, write_parts
from daskw2v.store.stage import groups_exist, run_once
from daskw2v.store.storage import Store
from daskw2v.types import Float64Array, Int32Array, Int64Array, UInt8Array
from daskw2v.vocabulary.count import StoredVocabulary

CACHED_MAPS = 4  # maps from codes to ids
PIECE = 1 << 20  # phrases in a piece, about
LOOK_BACK = 1 << 10  # words to read at first before a shard that begins inside a sentence
CHUNK_WORDS = 1 << 20  # words of the vocabulary to read at once: a chunk


class ShardReader:
    """A reader of the shards of a corpus as ids, with the words before and after them in sentences that shards cut.

    Parameters
    ----------
    work
        The work directory.
    corpus, vocabulary
        The corpus, and a vocabulary of all its words.
    """

    def __init__(self, work: Store, corpus: Corpus, vocabulary: StoredVocabulary) -> None:
        self._work, self._shards, maps = work, corpus.shards, vocabulary.open_maps()

        @lru_cache(CACHED_MAPS)
        def ids(number: int) -> Int32Array:
            """Return the word id of each code of a shard, shape (n_types,) int32."""
            path = corpus.shards[number].path
            return maps.read(path, (work / path).open_group())

        self.ids = ids

    def codes(self, number: int, start: int = 0, stop: int | None = None) -> Int32Array:
        """Return the codes of the tokens start..stop-1 of a shard, of all tokens by default, int32."""
        codes: Int32Array = layout.open_codes(self._work, self._shards[number])[start:stop]
        return codes

    def starts(self, number: int) -> Int64Array:
        """Return the index in a shard of the first token of each sentence that starts in it, shape (s,) int64."""
        return layout.read_starts(self._work, self._shards[number])

    def words(self, number: int) -> WordList:
        """Return the words of shard `number`, in the order of its dictionary, with the index of each code's word."""
        path, n_types = self._shards[number].path, self._shards[number].n_types
        data, offsets, _ = layout.read_words(self._work, path, 0, n_types)
        return WordList(data, offsets, layout.read_word_indices(self._work, path).astype(np.int64))

    def begins_inside_sentence(self, number: int) -> bool:
        """Return whether a shard begins inside a sentence of the shard before it; False behind the last shard."""
        if number == len(self._shards):
            return False
        starts = self.starts(number)
        return not len(starts) or bool(starts[0])

    def ids_before(self, number: int, limit: int) -> Int32Array:
        """Return the ids of the words before a shard that belong to the sentence of the shard's first word.

        These are the last `limit` words of the sentence's beginning, which may begin any number of shards before; fewer
        if it is shorter; none if the shard begins with a sentence.
        """
        parts = [np.empty(0, np.int32)]
        while limit and self.begins_inside_sentence(number):
            number -= 1
            starts, size = self.starts(number), self._shards[number].n_tokens
            begin = int(starts[-1]) if len(starts) else 0
            first = max(begin, size - limit)
            parts.append(self.ids(number)[self.codes(number, first)])
            limit -= size - first
            if len(starts):
                break
        return np.concatenate(parts[::-1])

    def word_after(self, number: int) -> tuple[int, bytes] | None:
        """Return id and bytes of the word after a shard; None if the shard's last sentence ends with the shard."""
        if not self.begins_inside_sentence(number + 1):
            return None
        path, code = self._shards[number + 1].path, int(self.codes(number + 1, 0, 1)[0])
        index = int(layout.read_word_indices(self._work, path)[code])
        word, _, _ = layout.read_words(self._work, path, index, index + 1)
        return int(self.ids(number + 1)[code]), word.tobytes()


@dataclass(frozen=True)
class PhraseJob:
    """The arguments that all tasks of a pass share; small, as they are sent with each task.

    Parameters
    ----------
    work
        The work directory, which all workers see.
    corpus
        Name of the corpus whose bigrams are joined.
    vocabulary
        Vocabulary of all words of the corpus.
    folder
        Folder of the pass.
    rules
        Rules that decide which bigrams are phrases.
    n_buckets
        Number of buckets of bigrams.
    """

    work: Store
    corpus: str
    vocabulary: StoredVocabulary
    folder: Store
    rules: PhraseRules
    n_buckets: int


@lru_cache(maxsize=2)
def _get_reader(job: PhraseJob) -> ShardReader:
    """Return the reader of a pass's corpus, which is cached."""
    return ShardReader(job.work, Corpus.load(job.work, job.corpus), job.vocabulary)


def find_finished(task_folder: Store) -> dict[str, Any] | None:
    """Return the manifest in the folder of a task; None if the task has not finished, or a Zarr group is missing."""
    manifest = task_folder.read_manifest()
    groups = () if manifest is None else (f"{manifest['attempt']}/{name}" for name in manifest["groups"])
    return manifest if groups_exist(task_folder, groups) else None


def _run_task(task_folder: Store, write: Callable[[Store], dict[str, Any]]) -> dict[str, Any]:
    """Run a task, unless it has finished before; return its manifest.

    Parameters
    ----------
    task_folder
        Folder of the task.
    write
        Writes groups into the folder of an attempt, and returns the fields of the manifest: `groups`, their paths below
        this folder, and further fields.
    """
    find = partial(find_finished, task_folder)
    return run_once(task_folder, find, lambda folder: {"attempt": folder.name, **write(folder)})


def count_shard(job: PhraseJob, number: int) -> dict[str, Any]:
    """Task: count the bigrams that end in the shard of a number; return the task's manifest."""

    def write(folder: Store) -> dict[str, Any]:
        """Write the counted bigrams by bucket, as `_run_task` calls it."""
        reader = _get_reader(job)
        (before,) = reader.ids_before(number, 1).tolist() or [NOTHING]
        keys = bigrams.bigram_keys(reader.codes(number), reader.starts(number), reader.ids(number), before)
        counted = bigrams.count_keys(keys)
        write_parts(folder, "bigrams", bigrams.cut_keys(counted["key"], job.n_buckets), counted, named=True)
        return {"groups": []}

    return _run_task(job.folder / "count" / str(number), write)


def merge_bucket(job: PhraseJob, bucket: int, attempts: Sequence[str]) -> dict[str, Any]:
    """Task: add up the counts of a bucket's bigrams over all shards; return the task's manifest.

    Parameters
    ----------
    job, bucket
        The pass, and the number of the bucket.
    attempts
        Valid attempt of `count_shard` of each shard.
    """

    def write(folder: Store) -> dict[str, Any]:
        """Write the bigrams that may be phrases, as `_run_task` calls it."""
        counted = (job.folder / "count" / str(shard) / attempt for shard, attempt in enumerate(attempts))
        parts = [read_part(attempt, "bigrams", job.n_buckets, bucket, bigrams.BIGRAM, 1)[:, 0] for attempt in counted]
        keys, counts = bigrams.merge_bigrams(parts)
        kept = counts >= job.rules.min_count  # rarer bigrams are never phrases
        pairs = bigrams.pairs_of(keys[kept])
        counts = np.column_stack([counts[kept], _read_word_counts(job.vocabulary, pairs)])
        layout.write_arrays(folder.create_group(), pairs=pairs, counts=counts)
        return {"groups": [""], "n_bigrams": len(keys)}

    return _run_task(job.folder / "merge" / str(bucket), write)


def _read_word_counts(vocabulary: StoredVocabulary, pairs: Int32Array) -> Int64Array:
    """Return the counts of the words of pairs of ids, shape (n, 2) int64."""
    counts = np.empty(pairs.shape, np.int64)
    for start in range(0, int(pairs.max(initial=-1)) + 1, CHUNK_WORDS):
        chunk = vocabulary.read_counts(start, min(start + CHUNK_WORDS, vocabulary.size))
        is_in_chunk = (pairs >= start) & (pairs < start + CHUNK_WORDS)
        counts[is_in_chunk] = chunk[pairs[is_in_chunk] - start]
    return counts


def choose_phrases(job: PhraseJob, attempts: Sequence[str], n_bigrams: int) -> dict[str, Any]:
    """Task: score the bigrams of all buckets, and write those that are phrases; return the task's manifest.

    Parameters
    ----------
    job
        The pass.
    attempts
        Valid attempt of `merge_bucket` of each bucket.
    n_bigrams
        Number of distinct bigrams of the text.
    """
    totals = BigramTotals(job.vocabulary.total, job.vocabulary.size + n_bigrams)

    def write(folder: Store) -> dict[str, Any]:
        """Write the phrases in pieces, as `_run_task` calls it."""
        pending, sizes = list[tuple[Int32Array, Int64Array, Float64Array]](), list[int]()
        for bucket, attempt in enumerate(attempts):
            group = (job.folder / "merge" / str(bucket) / attempt).open_group()
            pairs, (both, left, right) = read_array(group, "pairs"), read_array(group, "counts").T
            is_phrase, scores = job.rules.choose(both, left, right, totals)
            pending.append((pairs[is_phrase], both[is_phrase], scores[is_phrase]))
            n = sum(len(part) for part, _, _ in pending)
            if n >= PIECE or (n and bucket + 1 == len(attempts)):
                _write_piece(job.vocabulary, folder / str(len(sizes)), *map(np.concatenate, zip(*pending, strict=True)))
                sizes.append(n)
                pending.clear()
        return {"groups": [str(i) for i in range(len(sizes))], "n_phrases": sum(sizes), "n_bigrams": n_bigrams}

    return _run_task(job.folder / "choose" / "0", write)


def _write_piece(
    vocabulary: StoredVocabulary, folder: Store, pairs: Int32Array, counts: Int64Array, scores: Float64Array
) -> None:
    """Write n phrases into a folder: their words, counts and scores, shape (n,), and pairs of ids, shape (n, 2)."""
    group = folder.create_group()
    words, offsets = _read_words(vocabulary, pairs.reshape(-1))
    layout.write_arrays(group, words=words, offsets=offsets, counts=counts, scores=scores, pairs=pairs)


def _read_words(vocabulary: StoredVocabulary, ids: Int32Array) -> tuple[UInt8Array, Int64Array]:
    """Return the words with n ids, in the order of `ids`, as flat words: bytes, and offsets of shape (n + 1,)."""
    order = np.argsort(ids, kind="stable")
    data, lengths = list[UInt8Array](), list[Int64Array]()
    for start in range(0, int(ids.max(initial=-1)) + 1, CHUNK_WORDS):
        first, last = np.searchsorted(ids, [start, start + CHUNK_WORDS], sorter=order)
        stop = min(start + CHUNK_WORDS, vocabulary.size)
        words, offsets, _ = layout.read_words(vocabulary.folder, f"chosen/{vocabulary.chosen}", start, stop)
        part, bounds = take_words(words, offsets, ids[order[first:last]].astype(np.int64) - start)
        data.append(part)
        lengths.append(np.diff(bounds))
    offsets = np.cumsum(np.concatenate([[0], *lengths]), dtype=np.int64)
    ranks = np.empty(len(ids), np.int64)
    ranks[order] = np.arange(len(ids))
    return take_words(np.concatenate(data), offsets, ranks)


def join_shard(job: PhraseJob, number: int, pieces: Sequence[str]) -> dict[str, Any]:
    """Task: write a shard of the new corpus, with the phrases joined that begin in a shard; return the task's manifest.

    The task writes no group if the shard is nothing but the end of a phrase of the shard before.

    Parameters
    ----------
    job, number
        The pass, and the number of the shard.
    pieces
        Paths of the pieces of phrases, below the folder of the pass.
    """

    def write(folder: Store) -> dict[str, Any]:
        """Write the shard, as `_run_task` calls it."""
        reader = _get_reader(job)
        ids, words, next_word = reader.ids(number), reader.words(number), reader.word_after(number)
        codes, starts = reader.codes(number), reader.starts(number)
        skip_first = len(codes) > 0 and _is_second_word(job, number, int(ids[codes[0]]), pieces)
        ahead = NOTHING
        if next_word is not None:
            words = words.with_word(next_word[1])
            ids = np.append(ids, np.int32(next_word[0]))
            ahead = int(_find_codes(ids, ids[-1:])[0])
        pairs = _find_codes(ids, _read_pairs(job, pieces, ids))
        symbols, starts = bigrams.join_codes(codes, starts, pairs, len(ids), skip_first=skip_first, ahead=ahead)
        del codes
        if not len(symbols):
            return {"groups": [], "shard": None}
        symbols, dictionary = bigrams.encode_symbols(symbols, words, pairs, job.rules.delimiter)
        return {"groups": [""], "shard": layout.write_shard(folder, [symbols], starts, dictionary)}

    return _run_task(job.folder / "join" / str(number), write)


def _read_pairs(job: PhraseJob, pieces: Sequence[str], ids: Int32Array) -> Int32Array:
    """Return the phrases of all pieces with both words among `ids`, as pairs of ids, shape (n, 2) int32."""
    parts = [np.empty((0, 2), np.int32)]
    for piece in pieces:
        pairs = read_array((job.folder / piece).open_group(), "pairs")
        parts.append(pairs[np.isin(pairs, ids).all(axis=1)])
    return np.concatenate(parts)


def _find_codes(ids: Int32Array, wanted: Int32Array) -> Int32Array:
    """Return the code of each id in `wanted`, int32 in the shape of `wanted`; of codes with equal ids, the first.

    `ids` has the id of each code; each id in `wanted` is the id of a code.
    """
    order = np.argsort(ids, kind="stable")
    return order[np.searchsorted(ids, wanted, sorter=order)].astype(np.int32)


def _is_second_word(job: PhraseJob, number: int, first: int, pieces: Sequence[str]) -> bool:
    """Return whether the first word of a shard is the second word of a phrase that begins before the shard.

    In a run of overlapping phrases, every second phrase is joined, starting with the first. Therefore the phrases in
    the run before the shard are counted.

    Parameters
    ----------
    job, number
        The pass, and the number of the shard.
    first
        Id of the shard's first word.
    pieces
        As in `join_shard`.
    """
    limit = LOOK_BACK
    while True:
        before = _get_reader(job).ids_before(number, limit)
        words = np.append(before, np.int32(first)).tolist()
        known = set(map(tuple, _read_pairs(job, pieces, np.unique(words)).tolist())) if len(before) else set()
        run = 0
        while run < len(before) and (words[-run - 2], words[-run - 1]) in known:
            run += 1
        if run < limit:
            return run % 2 == 1
        limit *= 8
