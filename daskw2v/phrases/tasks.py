"""The tasks of a pass that joins bigrams.

Each task has its own folder below that of the pass:

    count/<shard>      bigrams: BIGRAMs of a shard, by bucket
    merge/<bucket>     pairs (n, 2) int32, counts (n, 3) int64: ids of the bigrams of a bucket that may be phrases, and
                       counts of the bigram, of its first and of its second word
    choose/0           the phrases, in pieces: words and offsets (2 n words, in pairs), counts int64, scores float64,
                       pairs (n, 2) int32 of ids
    join/<shard>       a shard of the new corpus

It contains attempts, and a manifest that names the valid one. Results depend only on the text and on where its shards
begin, so finished tasks stay valid if other results are lost.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np

from daskw2v.phrases.bigrams import (
    BIGRAM,
    NOTHING,
    WordList,
    bigram_keys,
    count_keys,
    cut_keys,
    encode_symbols,
    join_codes,
    merge_bigrams,
    pairs_of,
)
from daskw2v.phrases.score import BigramTotals, PhraseRules
from daskw2v.shards.layout import (
    Corpus,
    open_codes,
    read_starts,
    read_word_indices,
    read_words,
    write_arrays,
    write_shard,
)
from daskw2v.shards.words import take_words
from daskw2v.store.arrays import read_array
from daskw2v.store.partfile import read_part, write_parts
from daskw2v.store.stage import groups_exist, run_once
from daskw2v.store.storage import Store
from daskw2v.types import Float64Array, Int32Array, Int64Array, UInt8Array
from daskw2v.vocabulary.count import StoredVocabulary

KEPT_MAPS = 4  # maps from codes to ids that are cached
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

        @lru_cache(KEPT_MAPS)
        def ids(number: int) -> Int32Array:
            path = corpus.shards[number].path
            return maps.read(path, (work / path).open_group())

        self.ids = ids

    def codes(self, number: int, start: int = 0, stop: int | None = None) -> Int32Array:
        """Return the codes start..stop-1 of a shard; all by default."""
        codes: Int32Array = open_codes(self._work, self._shards[number])[start:stop]
        return codes

    def starts(self, number: int) -> Int64Array:
        """Return the starts of a shard's sentences."""
        return read_starts(self._work, self._shards[number])

    def words(self, number: int) -> WordList:
        """Return the words of a shard's codes."""
        path, n_types = self._shards[number].path, self._shards[number].n_types
        data, offsets, _ = read_words(self._work, path, 0, n_types)
        return WordList(data, offsets, read_word_indices(self._work, path).astype(np.int64))

    def goes_on(self, number: int) -> bool:
        """Return whether a shard begins inside a sentence of the shard before it; False after the last shard."""
        if number == len(self._shards):
            return False
        starts = self.starts(number)
        return not len(starts) or bool(starts[0])

    def before(self, number: int, most: int) -> Int32Array:
        """Return the ids of the last `most` words before a shard that belong to the sentence of its first word.

        The sentence may have begun any number of shards before.
        """
        parts = [np.empty(0, np.int32)]
        while most and self.goes_on(number):
            number -= 1
            starts, size = self.starts(number), self._shards[number].n_tokens
            begin = int(starts[-1]) if len(starts) else 0
            first = max(begin, size - most)
            parts.append(self.ids(number)[self.codes(number, first)])
            most -= size - first
            if len(starts):
                break
        return np.concatenate(parts[::-1])

    def after(self, number: int) -> tuple[int, bytes] | None:
        """Return id and bytes of the word after a shard if it is in the same sentence as the last word, else None."""
        if not self.goes_on(number + 1):
            return None
        path, code = self._shards[number + 1].path, int(self.codes(number + 1, 0, 1)[0])
        place = int(read_word_indices(self._work, path)[code])
        word, _, _ = read_words(self._work, path, place, place + 1)
        return int(self.ids(number + 1)[code]), word.tobytes()


@dataclass(frozen=True)
class PhraseJob:
    """Arguments shared by all tasks of a pass; small, as they are sent with each task.

    Parameters
    ----------
    work
        The work directory, which every worker sees.
    corpus
        Name of the corpus whose bigrams are joined.
    vocabulary
        Vocabulary of all its words.
    home
        Folder of the pass.
    rules
        Rules for phrases.
    n_buckets
        Number of buckets of bigrams.
    """

    work: Store
    corpus: str
    vocabulary: StoredVocabulary
    home: Store
    rules: PhraseRules
    n_buckets: int


@lru_cache(maxsize=2)
def _reader(job: PhraseJob) -> ShardReader:
    """Return a cached reader of the corpus."""
    return ShardReader(job.work, Corpus.load(job.work, job.corpus), job.vocabulary)


def finished(home: Store) -> dict[str, Any] | None:
    """Return the manifest of a task that has finished and whose groups exist, or None."""
    manifest = home.read_manifest()
    groups = () if manifest is None else (f"{manifest['attempt']}/{name}" for name in manifest["groups"])
    return manifest if groups_exist(home, groups) else None


def _once(home: Store, make: Callable[[Store], dict[str, Any]]) -> dict[str, Any]:
    """Run a task that writes groups into a folder, unless it has finished before; return its manifest."""
    return run_once(home, partial(finished, home), lambda folder: {"attempt": folder.name, **make(folder)})


def count_shard(job: PhraseJob, number: int) -> dict[str, Any]:
    """Task: count the bigrams that end in a shard."""

    def write(folder: Store) -> dict[str, Any]:
        reader = _reader(job)
        (before,) = reader.before(number, 1).tolist() or [NOTHING]
        bigrams = count_keys(bigram_keys(reader.codes(number), reader.starts(number), reader.ids(number), before))
        write_parts(folder, "bigrams", cut_keys(bigrams["key"], job.n_buckets), bigrams, named=True)
        return {"groups": []}

    return _once(job.home / "count" / str(number), write)


def merge_bucket(job: PhraseJob, bucket: int, attempts: Sequence[str]) -> dict[str, Any]:
    """Task: add up the counts of a bucket's bigrams over all shards."""

    def write(folder: Store) -> dict[str, Any]:
        counted = (job.home / "count" / str(shard) / attempt for shard, attempt in enumerate(attempts))
        parts = [read_part(home, "bigrams", job.n_buckets, bucket, BIGRAM, 1)[:, 0] for home in counted]
        keys, counts = merge_bigrams(parts)
        kept = counts >= job.rules.min_count  # rarer bigrams are never phrases
        pairs = pairs_of(keys[kept])
        counts = np.column_stack([counts[kept], _word_counts(job.vocabulary, pairs)])
        write_arrays(folder.create_group(), pairs=pairs, counts=counts)
        return {"groups": [""], "n_bigrams": len(keys)}

    return _once(job.home / "merge" / str(bucket), write)


def _word_counts(vocabulary: StoredVocabulary, pairs: Int32Array) -> Int64Array:
    """Return the counts of the words of pairs, shape (n, 2)."""
    counts = np.empty(pairs.shape, np.int64)
    for start in range(0, int(pairs.max(initial=-1)) + 1, CHUNK_WORDS):
        read = vocabulary.read_counts(start, min(start + CHUNK_WORDS, vocabulary.size))
        here = (pairs >= start) & (pairs < start + CHUNK_WORDS)
        counts[here] = read[pairs[here] - start]
    return counts


def choose_phrases(job: PhraseJob, attempts: Sequence[str], n_bigrams: int) -> dict[str, Any]:
    """Task: score the bigrams of all buckets and keep the phrases; `n_bigrams` is the number of distinct bigrams."""
    totals = BigramTotals(job.vocabulary.total, job.vocabulary.size + n_bigrams)

    def write(folder: Store) -> dict[str, Any]:
        held, sizes = list[tuple[Int32Array, Int64Array, Float64Array]](), list[int]()
        for bucket, attempt in enumerate(attempts):
            group = (job.home / "merge" / str(bucket) / attempt).open_group()
            pairs, (both, left, right) = read_array(group, "pairs"), read_array(group, "counts").T
            chosen, scores = job.rules.choose(both, left, right, totals)
            held.append((pairs[chosen], both[chosen], scores[chosen]))
            n = sum(len(part) for part, _, _ in held)
            if n >= PIECE or (n and bucket + 1 == len(attempts)):
                _write_piece(job.vocabulary, folder / str(len(sizes)), *map(np.concatenate, zip(*held, strict=True)))
                sizes.append(n)
                held.clear()
        return {"groups": [str(i) for i in range(len(sizes))], "n_phrases": sum(sizes), "n_bigrams": n_bigrams}

    return _once(job.home / "choose" / "0", write)


def _write_piece(
    vocabulary: StoredVocabulary, folder: Store, pairs: Int32Array, counts: Int64Array, scores: Float64Array
) -> None:
    group = folder.create_group()
    words, offsets = _words_of(vocabulary, pairs.reshape(-1))
    write_arrays(group, words=words, offsets=offsets, counts=counts, scores=scores, pairs=pairs)


def _words_of(vocabulary: StoredVocabulary, ids: Int32Array) -> tuple[UInt8Array, Int64Array]:
    """Return the words of ids: bytes and offsets."""
    order = np.argsort(ids, kind="stable")
    data, lengths = list[UInt8Array](), list[Int64Array]()
    for start in range(0, int(ids.max(initial=-1)) + 1, CHUNK_WORDS):
        first, last = np.searchsorted(ids, [start, start + CHUNK_WORDS], sorter=order)
        stop = min(start + CHUNK_WORDS, vocabulary.size)
        words, offsets, _ = read_words(vocabulary.folder, f"chosen/{vocabulary.chosen}", start, stop)
        taken, bounds = take_words(words, offsets, ids[order[first:last]].astype(np.int64) - start)
        data.append(taken)
        lengths.append(np.diff(bounds))
    offsets = np.cumsum(np.concatenate([[0], *lengths]), dtype=np.int64)
    places = np.empty(len(ids), np.int64)
    places[order] = np.arange(len(ids))
    return take_words(np.concatenate(data), offsets, places)


def join_shard(job: PhraseJob, number: int, pieces: Sequence[str]) -> dict[str, Any]:
    """Task: join the phrases that begin in a shard.

    It writes no group if the whole shard is the end of a phrase of the shard before.

    Parameters
    ----------
    job, number
        The pass and the number of the shard.
    pieces
        Folders of the pieces of phrases, below the folder of the pass.
    """

    def write(folder: Store) -> dict[str, Any]:
        reader = _reader(job)
        ids, words, ahead = reader.ids(number), reader.words(number), reader.after(number)
        codes, starts = reader.codes(number), reader.starts(number)
        taken, following = len(codes) > 0 and _is_taken(job, number, int(ids[codes[0]]), pieces), NOTHING
        if ahead is not None:
            words = words.with_word(ahead[1])
            ids = np.append(ids, np.int32(ahead[0]))
            following = int(_codes_of(ids, ids[-1:])[0])
        pairs = _codes_of(ids, _read_pairs(job, pieces, ids))
        symbols, starts = join_codes(codes, starts, pairs, len(ids), taken=taken, ahead=following)
        del codes
        if not len(symbols):
            return {"groups": [], "shard": None}
        symbols, dictionary = encode_symbols(symbols, words, pairs, job.rules.delimiter)
        return {"groups": [""], "shard": write_shard(folder, [symbols], starts, dictionary)}

    return _once(job.home / "join" / str(number), write)


def _read_pairs(job: PhraseJob, pieces: Sequence[str], ids: Int32Array) -> Int32Array:
    """Return the phrases with both words among `ids`, shape (n, 2)."""
    parts = [np.empty((0, 2), np.int32)]
    for piece in pieces:
        pairs = read_array((job.home / piece).open_group(), "pairs")
        parts.append(pairs[np.isin(pairs, ids).all(axis=1)])
    return np.concatenate(parts)


def _codes_of(ids: Int32Array, pairs: Int32Array) -> Int32Array:
    """Return the codes of pairs of ids; `ids` has the id of each code. If two codes have one id, it is the first."""
    order = np.argsort(ids, kind="stable")
    return order[np.searchsorted(ids, pairs, sorter=order)].astype(np.int32)


def _is_taken(job: PhraseJob, number: int, first: int, pieces: Sequence[str]) -> bool:
    """Return whether the first word of a shard is the second word of a phrase.

    In a run of overlapping phrases, every second one is joined, starting with the first. So this counts the phrases in
    the run before the shard.
    """
    most = LOOK_BACK
    while True:
        before = _reader(job).before(number, most)
        words = np.append(before, np.int32(first)).tolist()
        known = set(map(tuple, _read_pairs(job, pieces, np.unique(words)).tolist())) if len(before) else set()
        run = 0
        while run < len(before) and (words[-run - 2], words[-run - 1]) in known:
            run += 1
        if run < most:
            return run % 2 == 1
        most *= 8
