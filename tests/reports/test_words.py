import numpy as np
import pytest
from examples import model

from daskw2v.errors import UnknownWordError
from daskw2v.reports.compare import choose_words, find_nearest


def test_choose_words__are_the_longest_of_each_part_of_the_frequent():
    vectors = model([*"abcdefgh", "i2", "-"])
    vectors.vectors[:] = 0
    vectors.vectors[:, 0] = [1, 3, 2, 1, 1, 1, 1, 9, 10, 10]
    assert choose_words(vectors, 2) == ["b", "h"]
    assert choose_words(vectors, 2, "bcd".__contains__) == ["b", "d"]
    assert choose_words(vectors, 99) == list("abcdefgh")
    assert choose_words(vectors, 3, lambda _: False) == []


def test_find_nearest__equals_most_similar(trained):
    words = ["king", "waa", "漢字"]
    nearest = find_nearest(trained, words, 5)
    for word, near in zip(words, nearest, strict=True):
        expected = trained.most_similar(word, topn=5)
        assert [w for w, _ in near] == [w for w, _ in expected]
        assert np.allclose([c for _, c in near], [c for _, c in expected], atol=1e-6)
    assert find_nearest(trained, [], 5) == []


def test_find_nearest__names_an_unknown_word(trained):
    with pytest.raises(UnknownWordError, match="'no'"):
        find_nearest(trained, ["king", "no"], 5)
