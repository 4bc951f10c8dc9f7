"""Which words entered a vocabulary, which left it, and why.

Counts of words outside a vocabulary are not kept. So a reason names the bar of the version that lacks the word, which
the word did not reach there: where the word would have reached it with the count and rank that it has in the other
version, these have changed; where not, the rule has.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from daskw2v.limits import typed
from daskw2v.vocabulary.ids import StableIds
from daskw2v.vocabulary.vocabulary import Vocabulary
from daskw2v.wording import counted


class Reason(IntEnum):
    """Why a word entered or left.

    The first three are the Params that set the bar; then those that have changed, without which the word would have
    stayed where it was. UNKNOWN: a version does not tell its rules.
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
        """The name as manifests have it."""
        return self.name.lower()


@dataclass(frozen=True, kw_only=True)
class WordRules:
    """Which words a version keeps.

    Parameters
    ----------
    min_count, max_final_vocab, vocabulary
        As in `Params`; without `min_count` they are not known.
    """

    min_count: int | None = None
    max_final_vocab: int | None = None
    vocabulary: str | None = None

    @classmethod
    def of(cls, params: Mapping[str, Any], place: str) -> Self:
        """Return the rules that a manifest's Params say; `place` is where it lies.

        Raises
        ------
        StoreError
            If a value is of another type.
        """
        names = [field.name for field in fields(cls)]
        return typed(cls, {name: params[name] for name in names if name in params}, place)


class Entry(NamedTuple):
    """A word that entered or left, its count in the version that has it, why, and its stable id."""

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
        That has them.
    rows
        Theirs, rising, shape (n,) int64.
    reasons
        A `Reason` for each, shape (n,) int8.
    texts
        What each reason says.
    """

    vocabulary: Vocabulary
    rows: npt.NDArray[np.int64]
    reasons: npt.NDArray[np.int8]
    texts: Mapping[Reason, str]

    def __len__(self) -> int:
        return len(self.rows)

    def totals(self) -> dict[Reason, int]:
        """Return how many words each reason has, without those that have none."""
        numbers = np.bincount(self.reasons, minlength=len(Reason)).tolist()
        return {reason: numbers[reason] for reason in Reason if numbers[reason]}

    def entries(self, ids: StableIds | None = None) -> Iterator[Entry]:
        """Yield the words, most frequent first; `ids` are those of the version that has them."""
        counts = self.vocabulary.counts[self.rows].tolist()
        given = [None] * len(self) if ids is None else ids.ids[self.rows].tolist()
        for row, count, reason, id_ in zip(self.rows.tolist(), counts, self.reasons.tolist(), given, strict=True):
            yield Entry(self.vocabulary.word(row), count, self.texts[Reason(reason)], id_)


class Turnover(NamedTuple):
    """Words that entered, words that left, and how many stayed."""

    entered: Moved
    left: Moved
    kept: int

    def as_dict(self) -> dict[str, Any]:
        """Return numbers of words by reason, for a manifest."""
        entered, left = ({r.label: n for r, n in moved.totals().items()} for moved in (self.entered, self.left))
        return {"kept": self.kept, "entered": entered, "left": left}


def compare_words(known: Vocabulary, new: Vocabulary, rules_before: WordRules, rules_now: WordRules) -> Turnover:
    """Compare a version's vocabulary with the one before.

    Parameters
    ----------
    known, new
        The vocabularies before and now.
    rules_before, rules_now
        Which words they keep.
    """
    found = known.find_all(new)
    stayed = np.zeros(len(known), bool)
    stayed[found[found >= 0]] = True
    entered, left = np.flatnonzero(found < 0), np.flatnonzero(~stayed)
    about = _about_rules(rules_before, rules_now)
    return Turnover(
        Moved(new, entered, _reasons(new, entered, rules_now, known, rules_before),
              _about_bar(rules_before, new, "at least", "", "and") | about),
        Moved(known, left, _reasons(known, left, rules_before, new, rules_now),
              _about_bar(rules_now, new, "fewer than", "not ", "or not") | about),
        len(new) - len(entered),
    )  # fmt: skip


def _reasons(
    having: Vocabulary, rows: npt.NDArray[np.int64], rules: WordRules, lacking: Vocabulary, bar: WordRules
) -> npt.NDArray[np.int8]:
    """Return why rows of a vocabulary are not in another, whose rules are the bar."""
    if rules.min_count is None or bar.min_count is None:
        return np.full(len(rows), Reason.UNKNOWN, np.int8)
    if rules.vocabulary != bar.vocabulary:  # what the other list holds, or the rank among words of no list, is not kept
        return np.full(len(rows), Reason.VOCABULARY_CHANGED, np.int8)
    if bar.vocabulary is not None:
        return np.full(len(rows), Reason.VOCABULARY, np.int8)
    full = len(lacking) == bar.max_final_vocab  # else all words of min_count had room
    reasons = np.full(len(rows), Reason.MAX_FINAL_VOCAB if full else Reason.MIN_COUNT, np.int8)
    if bar.max_final_vocab is not None:
        reasons[rows >= bar.max_final_vocab] = Reason.MAX_FINAL_VOCAB_CHANGED  # a row is a rank in all text
    reasons[having.counts[rows] < bar.min_count] = Reason.MIN_COUNT_CHANGED
    return reasons


def _about_bar(bar: WordRules, new: Vocabulary, count: str, negation: str, junction: str) -> dict[Reason, str]:
    """Return what reasons say that name the bar."""
    counts = new.counts[: bar.max_final_vocab]
    last = counts[-1] if len(counts) else 0
    most = f"the {bar.max_final_vocab} most frequent, of which the last occurs {counted(last, 'time')}"
    return {
        Reason.MIN_COUNT: f"{count} min_count={bar.min_count}",
        Reason.MAX_FINAL_VOCAB: f"{negation}among {most}",
        Reason.VOCABULARY: f"{negation}in the list {junction} in the text",
    }


def _about_rules(before: WordRules, now: WordRules) -> dict[Reason, str]:
    """Return what reasons say that are no bar."""
    texts = {
        Reason[f"{field.name.upper()}_CHANGED"]:
            f"{field.name} is {getattr(now, field.name)} now, was {getattr(before, field.name)}"
        for field in fields(WordRules)
    }  # fmt: skip
    return texts | {Reason.UNKNOWN: "unknown: a version does not tell its rules"}
