"""What vectors may be asked, and may not: each refusal names what was given and what to give."""

import re
from types import SimpleNamespace

import numpy as np
import pytest

from daskw2v import Vectors, evaluate
from daskw2v.errors import ParameterError, UnknownWordError
from daskw2v.vocabulary.vocabulary import Vocabulary

WORDS = ["one", "two", "three", "four"]
VECTORS = Vectors(Vocabulary.from_words(WORDS, [4, 3, 2, 1]), np.eye(4, dtype=np.float32))
ONES = [1, 1, 1, 1]

NO_LIST = "is not a list of words. Give words in a list, such as ['king', 'queen']"
NO_PAIR = "is neither a word nor a word with its weight. Give words, or pairs of a word and a finite number"
NO_COUNT = "is not an integer >= 1. Give a {} of at least 1"
NO_VECTOR = "The query is not a vector of 4 dimensions: {}. Give one vector of 4 numbers"
NO_FIT = "The query has the shape {}, but the model has 4 dimensions. Give vectors of as many dimensions"
NOT_FINITE = "The query contains NaN, infinity, or numbers beyond float32. Give finite"

REFUSED = {  # what is asked, with what, and what is said
    **{f"[] {words!r}": (lambda v, words=words: v[words], f"{words!r} {NO_LIST}") for words in (None, True, b"a", 1.5)},
    **{
        f"doesnt_match {words!r}": (lambda v, words=words: v.doesnt_match(words), f"{words!r} {NO_LIST}")
        for words in (None, 5, "one", b"one")
    },
    "doesnt_match []": (lambda v: v.doesnt_match([]), "No words to compare. Give at least one word"),
    **{
        f"n_similarity {words!r}": (lambda v, words=words: v.n_similarity(["one"], words), f"{words!r} {NO_LIST}")
        for words in (None, 5, "one", b"one")
    },
    "n_similarity []": (lambda v: v.n_similarity([], ["one"]), "No words to compare. Give at least one word"),
    **{
        f"{method} {np.shape(given)}": (
            lambda v, method=method, given=given: getattr(v, method)(given),
            f"The query has the shape {np.shape(given)}, ",
        )
        for method, given in [
            ("similar_by_vector", np.ones(3)), ("similar_by_vector", np.ones((2, 4))), ("similar_by_vector", 5.0),
            ("most_similar", np.ones(3)), ("most_similar", np.ones((4, 3))[0]), ("most_similar", np.array(5.0)),
        ]
    },
    "most_similar a matrix in a list": (
        lambda v: v.most_similar(["one", np.ones((2, 4))]),
        "The query has the shape (2, 4), and is not one vector of 4 dimensions. Give one vector",
    ),
    "most_similar NaN": (lambda v: v.most_similar([np.full(4, np.nan)]), NOT_FINITE),
    "most_similar (vector, NaN)": (
        lambda v: v.most_similar([(np.ones(4), np.nan)]), "(array([1., 1., 1., 1.]), nan) is neither a word nor a word"
    ),
    "similar_by_vector a word": (lambda v: v.similar_by_vector("one"), NO_VECTOR.format("one")),
    "most_similar []": (lambda v: v.most_similar([], []), "No word to compare with. Give at least one word"),
    **{
        f"most_similar {words!r}": (lambda v, words=words: v.most_similar(words), f"{words!r} {NO_LIST}")
        for words in (None, True, b"one")
    },
    **{
        f"most_similar [{word!r}]": (lambda v, word=word: v.most_similar(["two", word]), f"{word!r} {NO_PAIR}")
        for word in [
            None, True, b"one", ("one",), ("one", "two"), ("one", "0.5"), ("one", None), ("one", True),
            ("one", float("nan")), ("one", float("-inf")), (1, "one"), ("one", 1, 2), ["one"],
        ]
    },
    **{
        f"{method} {name}={n!r}": (
            lambda v, method=method, args=args, name=name, n=n: getattr(v, method)(*args, **{name: n}),
            f"{name}={n!r} {NO_COUNT.format(name)}",
        )
        for method, args, names in [
            ("most_similar", ["one"], ["topn", "restrict_vocab"]),
            ("nearest", [ONES], ["topn", "restrict_vocab"]),
            ("similar_by_vector", [ONES], ["topn", "restrict_vocab"]),
            ("analogy", ["one", "two", "three"], ["topn"]),
        ]
        for name in names
        for n in (0, -1, -(10**30), 1.0, 2.5, float("nan"), float("inf"), "5", True, [5], *([None] * (name == "topn")))
    },
    "most_similar_cosmul nothing": (lambda v: v.most_similar_cosmul([], "one"), "No positive word to compare with."),
    "most_similar_cosmul weights": (lambda v: v.most_similar_cosmul([("one", 2)]), "A product of cosines has no weig"),
    "most_similar_cosmul topn": (lambda v: v.most_similar_cosmul("one", topn=0), "topn=0 is not an integer >= 1."),
    "get_vecattr": (lambda v: v.get_vecattr("one", "sample"), "attr='sample' is unknown. Give count"),
    "get_mean_vector []": (lambda v: v.get_mean_vector([]), "No words to compare."),
    "get_mean_vector weights": (lambda v: v.get_mean_vector(["one"], [1, 2]), "[1, 2] are not the weights of 1 key."),
    "get_mean_vector texts": (lambda v: v.get_mean_vector(["one"], ["x"]), "['x'] are not the weights of 1 key."),
    "get_mean_vector NaN": (lambda v: v.get_mean_vector(["one"], [np.nan]), "[nan] are not the weights of 1 key."),
    "distances": (lambda v: v.distances(np.ones(3)), NO_FIT.format((3,))),
    "cosine_similarities": (lambda v: v.cosine_similarities(np.ones(3), np.ones((2, 4))), "The query has the shape (2"),
    "predict_output_word": (lambda v: v.predict_output_word(["one"]), "Vectors(4 words x 4, url=None) has no outpu"),
    "encode a number": (lambda v: v.encode(5), "5 is neither a text nor a list of texts."),
    "encode numbers": (lambda v: v.encode([5]), "5 is neither a text nor a list of words."),
    "encode sif": (lambda v: v.encode(["one"], sif=0), "sif=0 is not"),
    "push_to_hub format": (lambda v: v.push_to_hub("a/b", format="text"), "format='text' is unknown."),
    "analogy method": (lambda v: v.analogy("one", "two", "three", method=[]), "method=[] is unknown. Give 3cosadd or"),
    **{
        f"nearest {given!r}": (lambda v, given=given: v.nearest(given), NO_VECTOR.format(str(given)))
        for given in (None, b"one", [b"one"], ["one", 2], [[1, 2], [1]], [1j] * 4, [True] * 4, [None] * 4)
    },
    **{
        f"nearest {np.shape(given)}": (lambda v, given=given: v.nearest(given), NO_FIT.format(np.shape(given)))
        for given in (3.0, [], [[]], [1, 2, 3], [[1, 2, 3, 4, 5]], np.ones((2, 2, 4)), np.ones((4, 3)), np.ones((4, 0)))
        if np.size(given) or np.ndim(given) == 2
    },
    **{
        f"nearest {x}": (lambda v, x=x: v.nearest([[0] * 4, [0, x, 0, 0]]), NOT_FINITE)
        for x in (np.nan, -np.inf, 1e300)
    },
    "evaluate a name": (lambda v: evaluate(v, similarity="a.tsv"), "similarity='a.tsv' is not a list of URLs. Give"),
    "evaluate a number": (lambda v: evaluate(v, analogy=[5]), "analogy=5 is no URL or path. Give text"),
    "evaluate nothing": (lambda v: evaluate(v, outliers=[""]), "outliers='' is no URL or path"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_query__that_means_nothing_is_refused(case):
    ask, message = REFUSED[case]
    with pytest.raises(ParameterError, match=f"^{re.escape(message)}"):
        ask(VECTORS)


@pytest.mark.parametrize(
    "word", [5, np.int64(-1), "", "ONE", "One", " one", "o\0ne", "one\n", "\ud800", "x" * (1 << 20)]
)
def test_unknown_word__is_named_wherever_it_stands(word):
    for ask in (
        lambda: VECTORS[word],
        lambda: VECTORS[["one", word]],
        lambda: VECTORS.similarity("one", word),
        lambda: VECTORS.distance(word, "one"),
        lambda: VECTORS.rank("one", word),
        lambda: VECTORS.closer_than(word, "one"),
        lambda: VECTORS.distances(word),
        lambda: VECTORS.distances("one", ["two", word]),
        lambda: VECTORS.get_index(word),
        lambda: VECTORS.get_vecattr(word, "count"),
        lambda: VECTORS.get_mean_vector(["one", word], ignore_missing=False),
        lambda: VECTORS.most_similar_cosmul(["one", word]),
        lambda: VECTORS.nearest(["one", str(word)]),
        lambda: VECTORS.get_vector(word),
        lambda: VECTORS.n_similarity(["one"], ["two", word]),
        lambda: VECTORS.most_similar([np.ones(4), word]),
        lambda: VECTORS.similar_by_word(word),
        lambda: VECTORS.key_to_index[word],
        lambda: VECTORS.most_similar("one", word),
        lambda: VECTORS.most_similar([("two", 1), (word, 0.5)]),
        lambda: VECTORS.analogy("one", word, "two"),
        lambda: VECTORS.analogy("one", "two", word, method="3cosmul"),
        lambda: VECTORS.doesnt_match(["one", word]),
    ):
        with pytest.raises(UnknownWordError, match=r"is not among the 4 words of the vocabulary\. (Look for|A number)"):
            ask()
    assert word not in VECTORS


@pytest.mark.parametrize("topn", [1, 3, 4, 10**9, 10**30, np.int64(2)])
def test_topn__beyond_the_words_gives_all_of_them(topn):
    expected = min(3, int(topn))
    assert len(VECTORS.most_similar("one", topn=topn)) == expected
    assert len(VECTORS.nearest(ONES, topn=topn)[0]) == min(4, int(topn))
    assert len(VECTORS.analogy("one", "one", "one", topn=topn, method="3cosmul")) == expected


@pytest.mark.parametrize(
    "words", [("one", "two"), np.array(["one", "two"]), iter(["one", "two"]), {"one": 1, "two": 2}]
)
def test_words__may_come_in_any_list(words):
    words = list(words) if hasattr(words, "__next__") else words
    assert VECTORS[words].shape == (2, 4)
    assert VECTORS.doesnt_match(words) in ("one", "two")
    assert {word for word, _ in VECTORS.most_similar(words)} == {"three", "four"}


def test_weights__may_be_numpys():
    weighted = [("one", np.float32(1)), ("two", np.int64(2))]
    assert VECTORS.most_similar(weighted, topn=1) == VECTORS.most_similar([("one", 1), ("two", 2)], topn=1)


def test_unknown_word_of_another_type__is_unknown():
    for word in (None, True, 5.0, b"one", ["one"], SimpleNamespace()):
        assert word not in VECTORS
        with pytest.raises(UnknownWordError, match="is not among the 4 words"):
            VECTORS.similarity("one", word)
