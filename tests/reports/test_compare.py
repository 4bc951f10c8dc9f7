import json

import numpy as np
import pytest

from daskw2v import compare
from daskw2v.errors import ParameterError, UnknownWordError
from daskw2v.evaluation.stability import neighbour_stability


def nearest(vectors, word, n):
    """The plain way: all cosines, sorted."""
    rows = vectors.vectors / np.linalg.norm(vectors.vectors, axis=1, keepdims=True)
    cosines = rows @ rows[vectors.vocabulary.id(word)]
    order = [i for i in np.argsort(-cosines) if i != vectors.vocabulary.id(word)]
    return [(vectors.vocabulary.word(i), cosines[i]) for i in order[:n]]


def test_compare__equals_a_plain_computation(earlier, trained):
    comparison = compare(earlier, trained, ["king", "queen"], topn=7)
    assert [pair.word for pair in comparison.neighbours] == ["king", "queen"]
    for pair in comparison.neighbours:
        first, second = nearest(earlier, pair.word, 7), nearest(trained, pair.word, 7)
        assert [w for w, _ in pair.first] == [w for w, _ in first]
        assert [w for w, _ in pair.second] == [w for w, _ in second]
        assert np.allclose([c for _, c in pair.second], [c for _, c in second], atol=1e-6)
        assert pair.shared == {w for w, _ in first} & {w for w, _ in second}
    assert comparison.stability == neighbour_stability(earlier, trained, topn=7)
    assert comparison.urls == ("/elsewhere/v0000", trained.url)


def test_compare__tells_what_differs(earlier, trained, evaluation):
    comparison = compare(earlier, trained, evaluations=(None, evaluation))
    assert [(d.name, d.first, d.second, d.change) for d in comparison.params] == [("window", 5, 9, 4)]
    sizes = {d.name: d for d in comparison.sizes}
    assert (sizes["words"].first, sizes["words"].second, sizes["words"].change) == (len(earlier), len(trained), 50)
    assert sizes["loss"].change == 0
    scores = {d.name: d for d in comparison.scores}
    assert (scores["ws353, spearman"].first, scores["ws353, spearman"].second) == (None, 0.6875)
    assert scores["ws353, spearman"].change is None
    assert "tiny, spearman" not in scores  # undefined in both


def test_compare__of_a_model_with_itself(trained, evaluation):
    comparison = compare(trained, trained, evaluations=(evaluation, evaluation))
    assert comparison.params == ()
    assert {d.change for d in comparison.scores} == {0}
    assert comparison.stability.overlap == 1
    assert all(len(pair.shared) == 10 for pair in comparison.neighbours)


def test_compare__chooses_words_that_both_know(earlier, trained):
    comparison = compare(trained, earlier)
    assert len(comparison.neighbours) == 10
    assert all(pair.word in earlier and pair.word.isalpha() for pair in comparison.neighbours)


def test_compare__needs_no_metadata(plain):
    comparison = compare(plain, plain, topn=3)
    assert [d.name for d in comparison.sizes] == ["words", "dimensions"]
    assert comparison.params == comparison.scores == ()


def test_comparison__becomes_json_and_rows(earlier, trained, evaluation):
    comparison = compare(earlier, trained, ["king"], 3, (evaluation, evaluation))
    values = json.loads(json.dumps(comparison.as_dict()))
    assert values["params"] == [{"name": "window", "first": 5, "second": 9, "change": 4}]
    assert [word for word, _ in values["neighbours"][0]["first"]] == [w for w, _ in nearest(earlier, "king", 3)]
    assert values["stability"]["topn"] == 3
    rows = list(comparison.rows())
    assert {len(row) for row in rows} == {len(comparison.columns)}
    assert ("window", "5", "9", "+4") in rows
    assert ("google, 3cosadd", "0.25", "0.25", "0") in rows
    assert not any(c in comparison.as_text() for c in "\x1b\x00\u202e\u2028")
    assert len(comparison.as_text().splitlines()) == len(rows) + 1


def test_compare__names_what_it_cannot_do(earlier, trained):
    last = trained.vocabulary.words[-1]
    with pytest.raises(UnknownWordError, match=last):
        compare(earlier, trained, [last])
    with pytest.raises(ParameterError, match="topn=0"):
        compare(earlier, trained, topn=0)
