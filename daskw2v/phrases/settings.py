"""Settings of phrases: which bigrams are joined."""

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

from daskw2v.config.choice import Group
from daskw2v.config.params import Params
from daskw2v.config.settings import DELIMITER, integer, number, one_of, setting
from daskw2v.errors import ParameterError
from daskw2v.phrases.score import SCORINGS, PhraseRules

_option = partial(setting, stage="phrases", honoured_by=("input",))


@dataclass(frozen=True, kw_only=True)
class PhraseDetection(Group):
    """Settings of joining frequent bigrams before training (Mikolov et al. 2013b, section 4).

    Parameters
    ----------
    passes
        Number of passes over the text, at least 1: one makes phrases of two words, two of up to four.
    min_count
        Fewest occurrences of a phrase; the default score is lowered by as many.
    threshold
        Score above which a bigram is a phrase; that of the scoring by default.
    scoring
        "default", of Mikolov et al., or "npmi", normalized pointwise mutual information.
    delimiter
        Text between the words of a phrase.

    Raises
    ------
    ParameterError
        If a value is outside its range; the message names field, value and range.

    Examples
    --------
    >>> from daskw2v import Params, PhraseDetection
    >>> params = Params(phrases=PhraseDetection(passes=2, scoring="npmi"))
    >>> params == Params(phrases=2, phrase_scoring="npmi")
    True
    """

    axis = "phrases"

    passes: int = _option(
        0,
        "passes that join frequent bigrams: one makes phrases of two words, two of up to four",
        integer(0, 8),
        key=True,
        flat="phrases",
    )
    min_count: int = _option(
        5,
        "fewest occurrences of a phrase; the default score is lowered by as many",
        integer(1),
        flat="phrase_min_count",
    )
    threshold: float | None = _option(
        None,
        "score above which a bigram is a phrase; that of phrase_scoring when not given",
        number(-1, open_low=True),
        flat="phrase_threshold",
    )
    scoring: str = _option(
        "default",
        "score of a bigram: default, of Mikolov et al.; npmi, normalized pointwise mutual information, of -1 to 1",
        one_of("default", "npmi"),
        flat="phrase_scoring",
    )
    delimiter: str = _option("_", "text between the words of a phrase", DELIMITER, flat="phrase_delimiter")

    @property
    def rules(self) -> PhraseRules:
        """The rules that decide which bigrams are phrases; without a threshold, with the default of the scoring."""
        threshold = SCORINGS[self.scoring].threshold if self.threshold is None else self.threshold
        return PhraseRules(self.min_count, threshold, self.scoring, self.delimiter)

    def check(self, settings: Any) -> None:
        """Refuse a threshold out of the scoring's range, and phrases with `base_matrix`, by a ParameterError.

        Parameters
        ----------
        settings
            The Params that these settings are part of.
        """
        scoring, threshold = SCORINGS[self.scoring], self.rules.threshold
        if not scoring.low < threshold <= scoring.high:
            bounds = f"above {scoring.low:g}" + ("" if math.isinf(scoring.high) else f" and at most {scoring.high:g}")
            problem = f"phrase_threshold={threshold!r} is out of range for phrase_scoring={self.scoring!r}."
            raise ParameterError(problem, f"Give a threshold {bounds}.")
        base = settings.flat().get("base_matrix")
        if base is not None:
            raise ParameterError(
                f"phrases={self.passes} cannot be used with base_matrix={base!r}: new text changes "
                "which words of the old text are joined.",
                "Leave base_matrix out and read all text again, or leave phrases out.",
            )


CLASSES = (PhraseDetection,)


def n_passes(params: Params) -> int:
    """Return the number of passes over the text that join bigrams; 0 if Params join no phrases."""
    detection = PhraseDetection.find(params)
    return 0 if detection is None else detection.passes


def with_threshold(params: Params) -> Params:
    """Return Params with a threshold of phrases: the default of their scoring, if they join phrases and set none."""
    detection = PhraseDetection.find(params)
    return params if detection is None else params.replace(phrase_threshold=detection.rules.threshold)
