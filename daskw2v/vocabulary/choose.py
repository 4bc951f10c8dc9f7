"""Which of all counted words are kept, and their ids."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from daskw2v.errors import VocabularyError
from daskw2v.shards.dictionary import Dictionary, padded, take_words
from daskw2v.shards.tasks import new_attempt
from daskw2v.storage import Store, read_array, write_array
from daskw2v.vocabulary.order import order_words
from daskw2v.vocabulary.vocabulary import Vocabulary

_MISSING_SHOWN = 20

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class _Words:
    """Words and where they come from: flat bytes, offsets; counts, bucket, place in it, each (u,) int64."""

    words: npt.NDArray[np.uint8]
    offsets: Integers
    counts: Integers
    buckets: Integers
    places: Integers

    @classmethod
    def read(cls, home: Store, bucket: int, attempt: str, places: Integers, counts: Integers) -> Self:
        group = (home / "merged" / str(bucket) / attempt).open_group()
        words, offsets = take_words(read_array(group, "words"), read_array(group, "offsets"), places)
        return cls(words, offsets, counts[places], np.full(len(places), bucket), places)

    @classmethod
    def join(cls, parts: Sequence[Self]) -> Self:
        lengths = np.concatenate([np.diff(part.offsets) for part in parts])
        return cls(
            np.concatenate([part.words for part in parts]),
            np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
            *(np.concatenate([getattr(part, name) for part in parts]) for name in ("counts", "buckets", "places")),
        )

    def best(self, limit: int | None) -> Self:
        """Return the words in order of their ids, at most `limit`."""
        order = order_words(self.words, self.offsets, self.counts)[:limit]
        words, offsets = take_words(self.words, self.offsets, order)
        return type(self)(words, offsets, self.counts[order], self.buckets[order], self.places[order])


def choose_words(
    home: Store, merged: list[str], min_count: int, max_final_vocab: int | None, listed: bool
) -> dict[str, Any]:
    """Choose words, give them ids by (-count, bytes) and write the vocabulary.

    In memory are one bucket at a time and the words kept.

    Parameters
    ----------
    home
        Where the vocabulary lies.
    merged
        Attempt of each bucket.
    min_count, max_final_vocab
        As in `Params`; a list of words has precedence.
    listed
        Whether a list of words lies at home, as group `listed`.

    Returns
    -------
    dict
        attempt, size, total (occurrences of words kept), missing and missing_words (listed, but absent).

    Raises
    ------
    VocabularyError
        If no word is left.
    """
    missing = np.array([], np.int64)
    if listed:
        kept, missing = _listed(home, merged)
    else:
        kept = _frequent(home, merged, min_count, max_final_vocab)
    if not len(kept.counts):
        largest = max(int(counts.max(initial=0)) for counts in (_counts(home, b, a) for b, a in enumerate(merged)))
        if listed:
            raise VocabularyError(
                f"None of the {len(missing)} words of the list occurs in the corpus.",
                "Compare the list's spelling and case with the tokenizer's.",
            )
        raise VocabularyError(
            f"No word occurs min_count={min_count} times; the most frequent one occurs {largest} times.",
            "Lower min_count or give more text.",
        )
    attempt = new_attempt()
    group = (home / "chosen" / attempt).create_group()
    Vocabulary(kept.words, kept.offsets, kept.counts).save(group)
    by_bucket = np.argsort(kept.buckets, kind="stable")
    bounds = np.searchsorted(kept.buckets[by_bucket], np.arange(len(merged) + 1))
    for bucket, name in enumerate(merged):
        chosen = by_bucket[bounds[bucket] : bounds[bucket + 1]]
        ids = np.full(len(_counts(home, bucket, name)), -1, np.int32)
        ids[kept.places[chosen]] = chosen
        write_array(group, f"ids_{bucket}", ids)
    return {
        "attempt": attempt,
        "size": len(kept.counts),
        "total": int(kept.counts.sum()),
        "missing": len(missing),
        "missing_words": _shown(home, missing[:_MISSING_SHOWN]) if listed else [],
    }


def _counts(home: Store, bucket: int, attempt: str) -> Integers:
    return read_array((home / "merged" / str(bucket) / attempt).open_group(), "counts")


def _frequent(home: Store, merged: list[str], min_count: int, limit: int | None) -> _Words:
    """Return the words of at least `min_count`, and of those the `limit` best."""
    least = min_count
    if limit is not None:
        # Counts alone first: of the buckets' words only those that can be among the best are ever held.
        top = np.array([], np.int64)
        for bucket, name in enumerate(merged):
            counts = _counts(home, bucket, name)
            top = np.concatenate([top, counts[counts >= min_count]])
            top = np.partition(top, -limit)[-limit:] if len(top) > limit else top
        least = int(top.min()) if len(top) == limit else min_count
    kept = _Words.join([_nothing()])
    for bucket, name in enumerate(merged):
        counts = _counts(home, bucket, name)
        kept = _Words.join([kept, _Words.read(home, bucket, name, np.flatnonzero(counts >= least), counts)])
        if limit is not None and len(kept.counts) > 2 * limit:  # many words as rare as the rarest kept
            kept = kept.best(limit)
    return kept.best(limit)


def _nothing() -> _Words:
    none = np.array([], np.int64)
    return _Words(np.array([], np.uint8), np.zeros(1, np.int64), none, none, none)


def _listed(home: Store, merged: list[str]) -> tuple[_Words, Integers]:
    """Return the listed words that occur, and the places in the list of those that do not."""
    words, offsets = _read_list(home)
    words, occurs = padded(words), np.zeros(len(offsets) - 1, np.bool_)
    parts = [_nothing()]
    for bucket, name in enumerate(merged):
        group = (home / "merged" / str(bucket) / name).open_group()
        both = Dictionary()
        both.encode(words, offsets[:-1], offsets[1:])
        ends = read_array(group, "offsets")
        codes = both.encode(padded(read_array(group, "words")), ends[:-1], ends[1:])
        places = np.flatnonzero(codes < len(occurs))
        occurs[codes[places]] = True
        parts.append(_Words.read(home, bucket, name, places, read_array(group, "counts")))
    return _Words.join(parts).best(None), np.flatnonzero(~occurs)


def _read_list(home: Store) -> tuple[npt.NDArray[np.uint8], Integers]:
    group = (home / "listed").open_group()
    return read_array(group, "words"), read_array(group, "offsets")


def _shown(home: Store, places: Integers) -> list[str]:
    words, offsets = _read_list(home)
    return [words[offsets[i] : offsets[i + 1]].tobytes().decode() for i in places]
