"""Which words entered a vocabulary, which left it, and why.

Counts of words outside a vocabulary are not stored. Therefore a reason is inferred from the version that has the word:
if the word's count and rank in that version satisfy the rules of the version without the word, then the count or rank
has changed; otherwise the rules have changed.
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
    """The reason why a word entered or left a vocabulary.

    MIN_COUNT, MAX_FINAL_VOCAB: the word's count or rank changed, on which the parameter of this name decides.
    VOCABULARY: the word is not both in the list of this name and in the text of the version without it. ..._CHANGED:
    the parameter itself changed. UNKNOWN: the Params of a version are not known.
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
    """The Params of a version that select the words of its vocabulary.

    Parameters
    ----------
    min_count, max_final_vocab, vocabulary
        As in `Params`. If `min_count` is None, the rules are not known.
    """

    min_count: int | None = None
    max_final_vocab: int | None = None
    vocabulary: str | None = None

    @classmethod
    def from_params(cls, params: Mapping[str, Any], url: str) -> Self:
        """Return the rules in the Params of a version's manifest, which lies at a URL.

        Raises
        ------
        StoreError
            If a value has the wrong type.
        """
        return typed(cls, {f.name: params[f.name] for f in fields(cls) if f.name in params}, url)


class Entry(NamedTuple):
    """A word that entered or left: its count in the version that has the word, the reason, and its stable id, if known.

    The reason is a text for users.
    """

    word: str
    occurrences: int
    reason: str
    id: int | None


@dataclass(frozen=True, eq=False)
class Moved:
    """The n words that one version has and another lacks.

    Parameters
    ----------
    vocabulary
        Vocabulary of the version that has the words.
    rows
        Rows of the words in `vocabulary`, ascending, shape (n,) int64.
    reasons
        The `Reason` of each word, shape (n,) int8.
    texts
        Text for users of each reason.
    """

    vocabulary: Vocabulary
    rows: Int64Array
    reasons: npt.NDArray[np.int8]
    texts: Mapping[Reason, str]

    def __len__(self) -> int:
        return len(self.rows)

    def totals(self) -> dict[Reason, int]:
        """Return the number of words with each reason, for the reasons that occur."""
        numbers = np.bincount(self.reasons, minlength=len(Reason)).tolist()
        return {reason: numbers[reason] for reason in Reason if numbers[reason]}

    def entries(self, ids: StableIds | None = None) -> Iterator[Entry]:
        """Yield the words, most frequent first; `ids` are the stable ids of `vocabulary`, None if not known."""
        counts = self.vocabulary.counts[self.rows].tolist()
        stable = [None] * len(self) if ids is None else ids.ids[self.rows].tolist()
        for row, count, reason, id_ in zip(self.rows.tolist(), counts, self.reasons.tolist(), stable, strict=True):
            yield Entry(self.vocabulary.word(row), count, self.texts[Reason(reason)], id_)


class Turnover(NamedTuple):
    """Words that entered a vocabulary, words that left it, and `kept`, the number of words that stayed."""

    entered: Moved
    left: Moved
    kept: int

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers of words that stayed, entered and left, the latter two by reason, for a manifest."""
        entered, left = ({r.label: n for r, n in moved.totals().items()} for moved in (self.entered, self.left))
        return {"kept": self.kept, "entered": entered, "left": left}


def compare_words(known: Vocabulary, new: Vocabulary, rules_before: WordRules, rules_now: WordRules) -> Turnover:
    """Find the words that entered and left between a version's vocabulary and that of the next version.

    Parameters
    ----------
    known, new
        The old and the new vocabulary.
    rules_before, rules_now
        The rules of the old and of the new vocabulary.
    """
    rows = known.find_all(new)
    has_left = np.ones(len(known), bool)
    has_left[rows[rows >= 0]] = False
    entered_rows, left_rows = np.flatnonzero(rows < 0), np.flatnonzero(has_left)
    entered_reasons = _infer_reasons(new, entered_rows, rules_now, known, rules_before)
    left_reasons = _infer_reasons(known, left_rows, rules_before, new, rules_now)
    changes = _describe_changed_rules(rules_before, rules_now)
    entered_texts = _describe_rules(rules_before, new, "at least", "", "and") | changes
    left_texts = _describe_rules(rules_now, new, "fewer than", "not ", "or not") | changes
    entered = Moved(new, entered_rows, entered_reasons, entered_texts)
    return Turnover(entered, Moved(known, left_rows, left_reasons, left_texts), len(new) - len(entered_rows))


def _infer_reasons(
    vocabulary: Vocabulary, rows: Int64Array, rules: WordRules, lacking: Vocabulary, lacking_rules: WordRules
) -> npt.NDArray[np.int8]:
    """Return the `Reason` of each word at `rows` of a vocabulary that the vocabulary `lacking` does not have.

    Parameters
    ----------
    vocabulary, rows, rules
        The vocabulary that has the n words, the words' rows in it, and its rules.
    lacking, lacking_rules
        The vocabulary without the words, and its rules.
    """
    if rules.min_count is None or lacking_rules.min_count is None:
        return np.full(len(rows), Reason.UNKNOWN, np.int8)
    if rules.vocabulary != lacking_rules.vocabulary:  # one list, and ranks of words without a list, are not stored
        return np.full(len(rows), Reason.VOCABULARY_CHANGED, np.int8)
    if lacking_rules.vocabulary is not None:
        return np.full(len(rows), Reason.VOCABULARY, np.int8)
    is_full = len(lacking) == lacking_rules.max_final_vocab  # otherwise there was room for all words of min_count
    reasons = np.full(len(rows), Reason.MAX_FINAL_VOCAB if is_full else Reason.MIN_COUNT, np.int8)
    if lacking_rules.max_final_vocab is not None:
        reasons[rows >= lacking_rules.max_final_vocab] = Reason.MAX_FINAL_VOCAB_CHANGED  # the row is the rank
    reasons[vocabulary.counts[rows] < lacking_rules.min_count] = Reason.MIN_COUNT_CHANGED
    return reasons


def _describe_rules(rules: WordRules, new: Vocabulary, bound: str, negation: str, junction: str) -> dict[Reason, str]:
    """Return the text for users of each reason that is an unchanged rule.

    Parameters
    ----------
    rules
        The rules of the version without the words.
    new
        The new vocabulary.
    bound, negation, junction
        Parts of the texts: how the count compares with `min_count`, "not " for words that left, and "and" or "or not".
    """
    counts = new.counts[: rules.max_final_vocab]
    last = counts[-1] if len(counts) else 0
    frequent = f"the {rules.max_final_vocab} most frequent, of which the last occurs {counted(last, 'time')}"
    return {
        Reason.MIN_COUNT: f"{bound} min_count={rules.min_count}",
        Reason.MAX_FINAL_VOCAB: f"{negation}among {frequent}",
        Reason.VOCABULARY: f"{negation}in the list {junction} in the text",
    }


def _describe_changed_rules(before: WordRules, now: WordRules) -> dict[Reason, str]:
    """Return the text for users of each reason that is a changed rule, and of the unknown reason."""
    texts = {Reason.UNKNOWN: "unknown: the Params of a version are not known"}
    for name in vars(now):
        reason = Reason[f"{name.upper()}_CHANGED"]
        texts[reason] = f"{name} is {getattr(now, name)} now, was {getattr(before, name)}"
    return texts
