"""The tasks of a pass that joins bigrams.

Below the home of a pass lies, for each task, a folder of its own:

    count/<shard>      bigrams: those of a shard, BIGRAMs cut into buckets
    merge/<bucket>     pairs (n, 2) int32, counts (n, 3) int64: ids of the bigrams of a bucket that may be phrases, and
                       occurrences of both together, of the first and of the second word
    choose/0           the phrases, in pieces: words and offsets (2 n words, by two), counts int64, scores float64,
                       pairs (n, 2) int32, their ids
    join/<shard>       a shard of the new corpus

In it are attempts, and a manifest that names the one that counts. What a task leaves depends on the text and on where
its shards begin, so that what was done is not done again after the rest was lost.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from daskw2v.phrases.bigrams import (
    BIGRAM,
    NOTHING,
    Ids,
    Integers,
    bigram_keys,
    count_keys,
    cut_keys,
    merge_bigrams,
    pairs_of,
)
from daskw2v.phrases.join import encode_symbols, join_codes
from daskw2v.phrases.reader import ShardReader
from daskw2v.phrases.score import Rules, Totals
from daskw2v.raw import read_part, write_parts
from daskw2v.shards.dictionary import take_words
from daskw2v.shards.layout import Corpus, groups_exist, read_words, write_shard
from daskw2v.shards.tasks import new_attempt
from daskw2v.storage import Store, read_array, write_array
from daskw2v.vocabulary.count import StoredVocabulary

PIECE = 1 << 20  # phrases of a piece, about
_LOOK = 1 << 10  # words looked back at first, where a shard begins inside a sentence
_WORDS = 1 << 20  # of the vocabulary read at once: a chunk


@dataclass(frozen=True)
class Pass:
    """What all tasks of a pass share; small, since it travels with each.

    Parameters
    ----------
    work
        The work directory, which every worker sees.
    corpus
        Name of the corpus whose bigrams are joined.
    vocabulary
        All of its words.
    home
        Where the pass lies.
    rules
        Which bigrams are phrases.
    n_buckets
        Buckets that bigrams are cut into.
    """

    work: Store
    corpus: str
    vocabulary: StoredVocabulary
    home: Store
    rules: Rules
    n_buckets: int


@lru_cache(maxsize=2)
def _reader(of: Pass) -> ShardReader:
    """Open what is read. Only a cache: a worker that lacks it makes it again."""
    return ShardReader(of.work, Corpus.load(of.work, of.corpus), of.vocabulary)


def finished(home: Store) -> dict[str, Any] | None:
    """Return the manifest of a task that was done, and whose groups are there."""
    manifest = home.read_manifest()
    if manifest is None or not groups_exist(home, (f"{manifest['attempt']}/{name}" for name in manifest["groups"])):
        return None
    return manifest


def _once(home: Store, make: Callable[[Store], dict[str, Any]]) -> dict[str, Any]:
    """Call what writes into a folder and says which groups it wrote; or return the manifest of a call before."""
    manifest = finished(home)
    if manifest is None:
        attempt = new_attempt()
        made = make(home / attempt)
        manifest = finished(home)  # another run of this task may have finished meanwhile
        if manifest is None:
            manifest = {"attempt": attempt, **made}
            home.write_manifest(manifest)
    return manifest


def count_shard(of: Pass, number: int) -> dict[str, Any]:
    """Task: count the bigrams that end in a shard."""
    return _once(of.home / "count" / str(number), partial(_count, of, number))


def _count(of: Pass, number: int, place: Store) -> dict[str, Any]:
    reader = _reader(of)
    before = reader.before(number, 1)
    keys = bigram_keys(
        reader.codes(number), reader.starts(number), reader.ids(number), before[-1] if len(before) else NOTHING
    )
    bigrams = count_keys(keys)
    write_parts(place, "bigrams", cut_keys(bigrams["key"], of.n_buckets), bigrams)
    return {"groups": []}


def merge_bucket(of: Pass, bucket: int, attempts: Sequence[str]) -> dict[str, Any]:
    """Task: add up the bigrams of a bucket, which a count of each shard has left."""
    return _once(of.home / "merge" / str(bucket), partial(_merge, of, bucket, attempts))


def _merge(of: Pass, bucket: int, attempts: Sequence[str], place: Store) -> dict[str, Any]:
    homes = (of.home / "count" / str(shard) / attempt for shard, attempt in enumerate(attempts))
    keys, counts = merge_bigrams([read_part(home, "bigrams", of.n_buckets, bucket, BIGRAM, 1)[:, 0] for home in homes])
    kept = counts >= of.rules.min_count  # no score lets others pass
    pairs = pairs_of(keys[kept])
    group = place.create_group()
    write_array(group, "pairs", pairs)
    write_array(group, "counts", np.column_stack([counts[kept], _word_counts(of.vocabulary, pairs)]))
    return {"groups": [""], "n_bigrams": len(keys)}


def _word_counts(vocabulary: StoredVocabulary, pairs: Ids) -> Integers:
    """Return how often the words of pairs occur, shape (n, 2)."""
    counts = np.empty(pairs.shape, np.int64)
    for start in range(0, int(pairs.max(initial=-1)) + 1, _WORDS):
        read = vocabulary.read_counts(start, min(start + _WORDS, vocabulary.size))
        here = (pairs >= start) & (pairs < start + _WORDS)
        counts[here] = read[pairs[here] - start]
    return counts


def choose_phrases(of: Pass, attempts: Sequence[str], n_bigrams: int) -> dict[str, Any]:
    """Task: score what the merged buckets hold, and keep the phrases; there are `n_bigrams` distinct bigrams in all."""
    return _once(of.home / "choose" / "0", partial(_choose, of, attempts, n_bigrams))


def _choose(of: Pass, attempts: Sequence[str], n_bigrams: int, place: Store) -> dict[str, Any]:
    totals = Totals(of.vocabulary.total, of.vocabulary.size + n_bigrams)
    held: list[tuple[Ids, Integers, npt.NDArray[np.float64]]] = []
    sizes: list[int] = []
    for bucket, attempt in enumerate(attempts):
        group = (of.home / "merge" / str(bucket) / attempt).open_group()
        pairs, counts = read_array(group, "pairs"), read_array(group, "counts")
        both, left, right = counts.T
        chosen, scores = of.rules.choose(both, left, right, totals)
        held.append((pairs[chosen], both[chosen], scores[chosen]))
        n = sum(len(part) for part, _, _ in held)
        if n >= PIECE or (n and bucket + 1 == len(attempts)):
            _write_piece(of.vocabulary, place / str(len(sizes)), *map(np.concatenate, zip(*held, strict=True)))
            sizes.append(n)
            held = []
    return {"groups": [str(i) for i in range(len(sizes))], "n_phrases": sum(sizes), "n_bigrams": n_bigrams}


def _write_piece(
    vocabulary: StoredVocabulary, place: Store, pairs: Ids, counts: Integers, scores: npt.NDArray[np.float64]
) -> None:
    group = place.create_group()
    words, offsets = _words_of(vocabulary, pairs.reshape(-1))
    for name, values in (
        ("words", words),
        ("offsets", offsets),
        ("counts", counts),
        ("scores", scores),
        ("pairs", pairs),
    ):
        write_array(group, name, values)


def _words_of(vocabulary: StoredVocabulary, ids: Ids) -> tuple[npt.NDArray[np.uint8], Integers]:
    """Return the words of ids: bytes and offsets."""
    order = np.argsort(ids, kind="stable")
    data: list[npt.NDArray[np.uint8]] = []
    lengths: list[Integers] = []
    for start in range(0, int(ids.max(initial=-1)) + 1, _WORDS):
        first, last = np.searchsorted(ids, [start, start + _WORDS], sorter=order)
        stop = min(start + _WORDS, vocabulary.size)
        words, offsets, _ = read_words(vocabulary.home, f"chosen/{vocabulary.chosen}", start, stop)
        taken, bounds = take_words(words, offsets, ids[order[first:last]].astype(np.int64) - start)
        data.append(taken)
        lengths.append(np.diff(bounds))
    offsets = np.cumsum(np.concatenate([[0], *lengths]), dtype=np.int64)
    places = np.empty(len(ids), np.int64)
    places[order] = np.arange(len(ids))
    return take_words(np.concatenate(data), offsets, places)


def join_shard(of: Pass, number: int, pieces: Sequence[str]) -> dict[str, Any]:
    """Task: join the phrases that begin in a shard; where nothing is left, as all of it is the end of one, no group is.

    Parameters
    ----------
    of, number
        Which shard.
    pieces
        Folders of the phrases' pieces, below the pass.
    """
    return _once(of.home / "join" / str(number), partial(_join, of, number, pieces))


def _join(of: Pass, number: int, pieces: Sequence[str], place: Store) -> dict[str, Any]:
    reader = _reader(of)
    ids, words, ahead = reader.ids(number), reader.words(number), reader.after(number)
    codes, starts = reader.codes(number), reader.starts(number)
    taken = len(codes) > 0 and _is_taken(of, number, int(ids[codes[0]]), pieces)
    if ahead is not None:
        words = words.with_word(ahead[1])
        ids = np.append(ids, np.int32(ahead[0]))
    pairs = _codes_of(ids, _read_pairs(of, pieces, ids))
    following = NOTHING if ahead is None else int(_codes_of(ids, ids[-1:])[0])
    joined = join_codes(codes, starts, pairs, len(ids), taken=taken, ahead=following)
    del codes
    if not len(joined.symbols):
        return {"groups": [], "shard": None}
    symbols, dictionary = encode_symbols(joined.symbols, words, pairs, of.rules.delimiter)
    return {"groups": [""], "shard": write_shard(place, [symbols], joined.starts, dictionary)}


def _read_pairs(of: Pass, pieces: Sequence[str], ids: Ids) -> Ids:
    """Return the phrases both of whose words are among ids, shape (n, 2)."""
    found = [np.empty((0, 2), np.int32)]
    for piece in pieces:
        pairs = read_array((of.home / piece).open_group(), "pairs")
        found.append(pairs[np.isin(pairs, ids).all(axis=1)])
    return np.concatenate(found)


def _codes_of(ids: Ids, pairs: Ids) -> Ids:
    """Return the codes of pairs of ids, of two codes for one id the first; `ids` are those of codes."""
    order = np.argsort(ids, kind="stable")
    return order[np.searchsorted(ids, pairs, sorter=order)].astype(np.int32)


def _is_taken(of: Pass, number: int, first: int, pieces: Sequence[str]) -> bool:
    """Tell whether the first word of a shard is the second one of a phrase.

    Of bigrams in a row that are all phrases every second is joined, from the first one on: how many are there?
    """
    most = _LOOK
    while True:
        before = _reader(of).before(number, most)
        words = np.append(before, np.int32(first)).tolist()
        known = set(map(tuple, _read_pairs(of, pieces, np.unique(words)).tolist())) if len(before) else set()
        run = 0
        while run < len(before) and (words[-run - 2], words[-run - 1]) in known:
            run += 1
        if run < most:
            return run % 2 == 1
        most *= 8
