"""Words are found by their bytes, one at a time or all at once."""

from hypothesis import given
from hypothesis import strategies as st

from daskw2v.vocabulary.index import WordIndex
from daskw2v.vocabulary.vocabulary import Vocabulary

WORDS = st.lists(st.text(st.characters(codec="utf-8"), min_size=1, max_size=4), unique=True, max_size=40)


def flat(words):
    vocabulary = Vocabulary.from_words(words, [1] * len(words))
    return vocabulary.data, vocabulary.offsets


@given(known=WORDS, asked=WORDS)
def test_find_all__is_find_for_each(known, asked):
    index = WordIndex(*flat(known))
    places = [known.index(word) if word in known else -1 for word in asked]
    assert index.find_all(*flat(asked)).tolist() == places
    assert [index.find(word.encode()) for word in asked] == [None if place < 0 else place for place in places]
