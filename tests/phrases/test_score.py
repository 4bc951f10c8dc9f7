"""Scores are gensim's to the last bit; thresholds and options that mean nothing are refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskw2v.config.params import Params
from daskw2v.errors import ParameterError
from daskw2v.phrases.score import SCORINGS, BigramTotals, PhraseRules
from daskw2v.phrases.settings import with_threshold

theirs = pytest.importorskip("gensim.models.phrases")
npmi_scorer, original_scorer = theirs.npmi_scorer, theirs.original_scorer

COUNTS = st.lists(st.integers(1, 10**9), min_size=3, max_size=3).map(sorted)


@pytest.mark.parametrize(("scoring", "scorer"), [("default", original_scorer), ("npmi", npmi_scorer)])
@given(counts=st.lists(COUNTS, min_size=1, max_size=20), min_count=st.integers(1, 5), more=st.integers(1, 10**6))
def test_choose__scores_as_gensim(scoring, scorer, counts, min_count, more):
    both, left, right = np.maximum(min_count, counts).T  # no bigram is more frequent than its words
    totals = BigramTotals(int(right.max()) + more, more)
    chosen, scores = PhraseRules(min_count, 0.25, scoring, "_").choose(both, left, right, totals)
    expected = [
        scorer(
            worda_count=a,
            wordb_count=b,
            bigram_count=ab,
            len_vocab=totals.n_entries,
            min_count=min_count,
            corpus_word_count=totals.n_tokens,
        )
        for ab, a, b in zip(both.tolist(), left.tolist(), right.tolist(), strict=True)
    ]
    assert scores.tolist() == expected
    assert chosen.tolist() == [score > 0.25 for score in expected]


def test_rules__have_the_scorings_own_threshold():
    for name, scoring in SCORINGS.items():
        params = Params(phrases=1, phrase_scoring=name)
        assert params.phrases.rules.threshold == with_threshold(params).phrases.threshold == scoring.threshold
        assert params.replace(phrase_threshold=0.125).phrases.rules.threshold == 0.125
    assert with_threshold(Params()) == Params()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"phrase_min_count": 6}, r"phrase_min_count=6 changes nothing without phrases"),
        ({"phrase_threshold": 10}, r"phrase_threshold=10\.0 changes nothing.*leave phrase_threshold out"),
        ({"phrase_scoring": "npmi"}, r"phrase_scoring='npmi' changes nothing"),
        ({"phrase_delimiter": "-"}, r"phrase_delimiter='-' changes nothing"),
        ({"phrases": 1, "phrase_threshold": 0}, r"phrase_threshold=0\.0 is out of range.*'default'.*above 0\."),
        ({"phrases": 1, "phrase_threshold": -0.5}, r"phrase_threshold=-0\.5 is out of range"),
        (
            {"phrases": 1, "phrase_threshold": 10, "phrase_scoring": "npmi"},
            r"phrase_threshold=10\.0 is out of range for phrase_scoring='npmi'.*above -1 and at most 1\.",
        ),
        (
            {"objective": "context_matrix", "phrases": 2, "base_matrix": "0"},
            r"phrases=2 cannot be used with base_matrix='0'",
        ),
    ],
)
def test_params__refuse_options_of_phrases_that_mean_nothing(options, message):
    with pytest.raises(ParameterError, match=message):
        Params(**options)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"phrases": 1, "phrase_threshold": 1e-300},
        {"phrases": 1, "phrase_threshold": -0.9, "phrase_scoring": "npmi"},
    ],
)
def test_params__take_options_of_phrases_that_mean_something(options):
    assert Params(**options).flat().items() >= options.items()
