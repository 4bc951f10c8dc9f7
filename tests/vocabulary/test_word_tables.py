"""Which column of a table of the user's is meant."""

import pytest

from daskw2v.errors import InputError
from daskw2v.vocabulary.word_tables import single


def test_column__is_the_one_of_that_name():
    assert single(["item", "brand"], "brand", "t.csv", "item, brand") == "brand"


@pytest.mark.parametrize(("names", "has"), [(["item"], "item"), ([], "none"), (["brand", "brand"], "brand, brand")])
def test_column__that_is_missing_or_there_twice_is_refused(names, has):
    with pytest.raises(InputError, match=rf"t.csv has no single column 'brand'.*item, brand; its columns are: {has}"):
        single(names, "brand", "t.csv", "item, brand")
