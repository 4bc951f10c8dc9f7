"""Which words entered a vocabulary, which left it, and why.

Counts of words outside a vocabulary are not stored. So a reason is inferred from the version that has the word: if its
count and rank there satisfy the rules of the version that lacks it, the count or rank has changed; otherwise the rules
have changed.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from daskw2v.errors import counted
from daskw2v.store.limits import typed
from daskw2v.types import Int64Array
from daskw2v.vocabulary.ids import StableIds
from daskw2v.vocabulary.vocabulary import Vocabulary


class Reason(IntEnum):
    """Why a word entered or left.

    MIN_COUNT, MAX_FINAL_VOCAB, VOCABULARY: the word's count, rank or list entry changed, and this parameter decides
    about it. ..._CHANGED: the parameter itself changed. UNKNOWN: the Params of a version are not known.
    """

    MIN_COUNT = 0
    MAX_FINAL_VOCAB = 1
    VOCABULARY = 2
    MIN_COUNT_CHANGED = 3
    MAX_FINAL_VOCAB_CHANGED = 4
    VOCABULARY_CHANGED = 5
    UNKNOWN = 6

    @property
    def label(self) -> str:
        """The name in manifests."""
        return self.name.lower()


@dataclass(frozen=True, kw_only=True)
class WordRules:
    """The rules by which a version keeps words.

    Parameters
    ----------
    min_count, max_final_vocab, vocabulary
        As in `Params`. If `min_count` is None, the rules are not known.
    """

    min_count: int | None = None
    max_final_vocab: int | None = None
    vocabulary: str | None = None

    @classmethod
    def of(cls, params: Mapping[str, Any], place: str) -> Self:
        """Return the rules in the Params of a manifest; `place` is its URL.

        Raises
        ------
        StoreError
            If a value has the wrong type.
        """
        return typed(cls, {f.name: params[f.name] for f in fields(cls) if f.name in params}, place)


class Entry(NamedTuple):
    """A word that entered or left, its count in the version that has it, the reason, and its stable id."""

    word: str
    occurrences: int
    reason: str
    id: int | None


@dataclass(frozen=True, eq=False)
class Moved:
    """Words that one version has and another lacks.

    Parameters
    ----------
    vocabulary
        Vocabulary of the version that has them.
    rows
        Their rows, ascending, shape (n,) int64.
    reasons
        A `Reason` for each, shape (n,) int8.
    texts
        Text of each reason.
    """

    vocabulary: Vocabulary
    rows: Int64Array
    reasons: npt.NDArray[np.int8]
    texts: Mapping[Reason, str]

    def __len__(self) -> int:
        return len(self.rows)

    def totals(self) -> dict[Reason, int]:
        """Return the number of words of each reason that occurs."""
        numbers = np.bincount(self.reasons, minlength=len(Reason)).tolist()
        return {reason: numbers[reason] for reason in Reason if numbers[reason]}

    def entries(self, ids: StableIds | None = None) -> Iterator[Entry]:
        """Yield the words, most frequent first; `ids` are the stable ids of the version that has them."""
        counts = self.vocabulary.counts[self.rows].tolist()
        stable = [None] * len(self) if ids is None else ids.ids[self.rows].tolist()
        for row, count, reason, id_ in zip(self.rows.tolist(), counts, self.reasons.tolist(), stable, strict=True):
            yield Entry(self.vocabulary.word(row), count, self.texts[Reason(reason)], id_)


class Turnover(NamedTuple):
    """Words that entered, words that left, and the number of words that stayed."""

    entered: Moved
    left: Moved
    kept: int

    def as_dict(self) -> dict[str, Any]:
        """Return the number of words by reason, for a manifest."""
        entered, left = ({r.label: n for r, n in moved.totals().items()} for moved in (self.entered, self.left))
        return {"kept": self.kept, "entered": entered, "left": left}


def compare_words(known: Vocabulary, new: Vocabulary, rules_before: WordRules, rules_now: WordRules) -> Turnover:
    """Compare a version's vocabulary with the one before.

    Parameters
    ----------
    known, new
        The old and the new vocabulary.
    rules_before, rules_now
        The old and the new rules.
    """
    rows = known.find_all(new)
    gone = np.ones(len(known), bool)
    gone[rows[rows >= 0]] = False
    entered, left = np.flatnonzero(rows < 0), np.flatnonzero(gone)
    why_entered = _reasons(new, entered, rules_now, known, rules_before)
    why_left = _reasons(known, left, rules_before, new, rules_now)
    about = _about_rules(rules_before, rules_now)
    about_entered = _about_bar(rules_before, new, "at least", "", "and") | about
    about_left = _about_bar(rules_now, new, "fewer than", "not ", "or not") | about
    moved = Moved(new, entered, why_entered, about_entered), Moved(known, left, why_left, about_left)
    return Turnover(*moved, len(new) - len(entered))


def _reasons(
    having: Vocabulary, rows: Int64Array, rules: WordRules, lacking: Vocabulary, bar: WordRules
) -> npt.NDArray[np.int8]:
    """Return why words of the vocabulary `having` are not in `lacking`, whose rules are `bar`."""
    if rules.min_count is None or bar.min_count is None:
        return np.full(len(rows), Reason.UNKNOWN, np.int8)
    if rules.vocabulary != bar.vocabulary:  # the other list, and ranks of words without a list, are not stored
        return np.full(len(rows), Reason.VOCABULARY_CHANGED, np.int8)
    if bar.vocabulary is not None:
        return np.full(len(rows), Reason.VOCABULARY, np.int8)
    full = len(lacking) == bar.max_final_vocab  # otherwise there was room for all words of min_count
    reasons = np.full(len(rows), Reason.MAX_FINAL_VOCAB if full else Reason.MIN_COUNT, np.int8)
    if bar.max_final_vocab is not None:
        reasons[rows >= bar.max_final_vocab] = Reason.MAX_FINAL_VOCAB_CHANGED  # the row is the rank
    reasons[having.counts[rows] < bar.min_count] = Reason.MIN_COUNT_CHANGED
    return reasons


def _about_bar(bar: WordRules, new: Vocabulary, count: str, negation: str, junction: str) -> dict[Reason, str]:
    """Return the texts of the reasons with unchanged rules."""
    counts = new.counts[: bar.max_final_vocab]
    last = counts[-1] if len(counts) else 0
    most = f"the {bar.max_final_vocab} most frequent, of which the last occurs {counted(last, 'time')}"
    return {
        Reason.MIN_COUNT: f"{count} min_count={bar.min_count}",
        Reason.MAX_FINAL_VOCAB: f"{negation}among {most}",
        Reason.VOCABULARY: f"{negation}in the list {junction} in the text",
    }


def _about_rules(before: WordRules, now: WordRules) -> dict[Reason, str]:
    """Return the texts of the other reasons."""
    texts = {Reason.UNKNOWN: "unknown: the Params of a version are not known"}
    for name in vars(now):
        reason = Reason[f"{name.upper()}_CHANGED"]
        texts[reason] = f"{name} is {getattr(now, name)} now, was {getattr(before, name)}"
    return texts
