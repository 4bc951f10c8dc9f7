import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from daskw2v.vocabulary.order import order_words

letters = st.sampled_from([b"a", b"b", b"\0", b"\xff"])
words = st.lists(letters, max_size=20).map(b"".join) | st.lists(letters, max_size=3).map(
    lambda tail: b"abcdefghabcdefgh" + b"".join(tail)
)


@given(st.dictionaries(words, st.integers(1, 3)))
def test_order_words__equals_sorted(counts):
    vocabulary = list(counts)
    offsets = np.cumsum([0, *map(len, vocabulary)]).astype(np.int64)
    order = order_words(
        np.frombuffer(b"".join(vocabulary), np.uint8), offsets, np.array(list(counts.values()), np.int64)
    )
    assert [vocabulary[i] for i in order] == sorted(vocabulary, key=lambda word: (-counts[word], word))
