"""The summary of a run's table of features."""

import numpy as np
import pytest

from daskw2v import Params, Resources, train
from daskw2v.features.keys import FeatureColumn
from daskw2v.features.table import summarize_table
from daskw2v.features.words import WordFeatures

pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")

FOUND = WordFeatures(np.array([0, 2, 2, 3]), np.zeros(3, np.int32), np.ones(3, np.float32), np.ones(3, np.float32))
BRAND, PRICE = FeatureColumn("brand", 1.0, values=("acme", "zorg")), FeatureColumn("price", 1.0, knots=(1.0,))


def test_words_and_columns__are_summary_of():
    columns = (BRAND, PRICE, FeatureColumn("comment", 0.0))
    assert summarize_table(FOUND, columns, ()) == (
        "the table has 2 of 3 words; brand: categories, 2 rows; price: numbers, 1 row"
    )


def test_columns__that_are_gone_or_of_another_kind_are_summary_of():
    before = (BRAND, FeatureColumn("price", 1.0, values=("1", "2", "3")), FeatureColumn("colour", 1.0, values=("red",)))
    assert summarize_table(FOUND, (BRAND, PRICE), before).endswith(
        "colour is no longer there; price had categories, 3 rows before, and starts anew"
    )


def test_training__says_which_words_have_features(tmp_path):
    (tmp_path / "text.txt").write_text("a b c\n" * 20)
    pq.write_table(pa.table({"word": ["a", "z"], "x": ["u", "v"]}), tmp_path / "t.parquet")
    heard = []
    train(
        str(tmp_path / "text.txt"),
        work=str(tmp_path / "work"),
        resources=Resources(threads=1),
        params=Params(features=str(tmp_path / "t.parquet"), vector_size=4, epochs=1, sample=0),
        listener=lambda report: heard.append((report.stage, report.message)),
    )
    assert ("features", "the table has 1 of 3 words; x: categories, 1 row") in heard
