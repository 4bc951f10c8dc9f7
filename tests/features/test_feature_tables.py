"""Tables of features: formats, kinds of columns, and what is refused."""

import tracemalloc

import numpy as np
import pytest

from daskw2v.corpus.sources import find_sources
from daskw2v.errors import InputError, ParameterError
from daskw2v.features.keys import FeatureColumn, FeatureKeys
from daskw2v.features.table import TableFeatures, check_table, read_table
from daskw2v.vocabulary.vocabulary import Vocabulary

pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")

WORDS, COUNTS = ["a", "naïve", "c", "7"], [9, 5, 3, 1]


def features_in(path, weights=None):
    weights = weights or {}
    table = TableFeatures(Vocabulary.from_words(WORDS, COUNTS), weights)
    sources = find_sources(path)
    check_table(str(path), sources, {}, 10.0, weights)
    for source in sources:
        for words, columns in read_table(source, {}, 10.0):
            table.add(words, columns, source.url)
    return table.finish()


def of_each(found):
    return [
        dict(zip(found.rows[a:b].tolist(), found.weights[a:b].tolist(), strict=True))
        for a, b in zip(found.offsets, found.offsets[1:], strict=False)
    ]


def test_tables__of_several_formats_say_the_same(tmp_path):
    lines = "item,brand\nc,acme\nnaïve,zorg\nx,other\n7,acme\n"
    columns = {"item": ["c", "naïve", "x", "7"], "brand": ["acme", "zorg", "other", "acme"]}
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    pq.write_table(pa.table({name: pa.array(v).dictionary_encode() for name, v in columns.items()}), tmp_path / "b.pq")
    (tmp_path / "c.csv").write_text(lines)
    (tmp_path / "d.tsv").write_text(lines.replace(",", "\t"))
    for path in tmp_path.iterdir():
        columns_found, actual = features_in(path)
        assert columns_found == (FeatureColumn("brand", 1.0, values=("zorg", "acme")),), "the most frequent first"
        assert of_each(actual) == [{}, {0: 1.0}, {1: 1.0}, {1: 1.0}]


def test_kinds__of_columns(tmp_path):
    pq.write_table(
        pa.table(
            {
                "word": ["a", "naïve", "c", "7"],
                "tags": [["x", "y"], [], None, ["y", None, "y"]],
                "n": [1, 2, None, 1],
                "price": [1.0, 3.0, float("nan"), None],
                "new": [True, False, None, True],
            }
        ),
        tmp_path / "t.parquet",
    )
    columns, actual = features_in(tmp_path, {"price": 0.5})
    assert [column.name for column in columns] == ["tags", "n", "price", "new"]
    assert columns[0].values == ("y", "x")
    assert columns[1].values == ("1", "2")
    assert columns[2].knots[0] == 1.0
    assert columns[2].knots[-1] == 3.0
    assert columns[3].values == ("True", "False")
    last = 4 + len(columns[2].knots)
    assert of_each(actual) == [
        {0: 1.0, 1: 1.0, 2: 1.0, 4: 0.5, last: 1.0},
        {3: 1.0, last - 1: 0.5, last + 1: 1.0},
        {},
        {0: 1.0, 2: 1.0, last: 1.0},
    ]


def test_a_long_category__takes_no_room_for_others(tmp_path):
    values = [*map(str, range(50)), "x" * (1 << 20)]
    pq.write_table(pa.table({"word": ["a"], "x": [values]}), tmp_path / "t.parquet")
    tracemalloc.start()
    try:
        assert len(features_in(tmp_path)[0][0].values) == 51
        assert tracemalloc.get_traced_memory()[1] < 50 << 20
    finally:
        tracemalloc.stop()


def test_views_of_texts__are_categories(tmp_path):
    """Polars writes them."""
    views = pa.table(
        {
            "word": pa.array(["c", "a"], pa.string_view()),
            "x": pa.array(["u", "v"], pa.string_view()),
            "many": pa.array([["u"], ["v", "u"]], pa.list_(pa.string_view())),
        }
    )
    pq.write_table(views, tmp_path / "t.parquet")
    assert [column.values for column in features_in(tmp_path)[0]] == [("v", "u"), ("u", "v")]


@pytest.mark.parametrize("empty", ["a", "b", "c"])
def test_column__may_be_empty_in_one_file(tmp_path, empty):
    """Without values it is of no type there, in CSV."""
    lines = {"a": "naïve,2.5,x", "b": "c,1.5,y", "c": "a,3.5,y"}
    for name, line in lines.items():
        (tmp_path / f"{name}.csv").write_text(
            "item,price,brand\n" + (f"{line.split(',')[0]},," if name == empty else line)
        )
    columns, actual = features_in(tmp_path)
    assert {column.name for column in columns} == {"price", "brand"}
    assert sum(map(bool, of_each(actual))) == 2


def test_a_weight_of_zero__leaves_a_column_out_whatever_its_type(tmp_path):
    pq.write_table(
        pa.table({"word": ["a"], "when": pa.array([0], pa.timestamp("s")), "b": ["x"]}), tmp_path / "t.parquet"
    )
    columns, _ = features_in(tmp_path, {"when": 0.0})
    assert [column.name for column in columns if column.size] == ["b"]
    with pytest.raises(InputError, match=r"'when' of .* is of type timestamp.*feature_weights=\{'when': 0\}"):
        features_in(tmp_path)


def test_a_word_of_several_rows__has_the_features_of_all(tmp_path):
    (tmp_path / "1.csv").write_text("word,brand,price\na,acme,1.0\na,acme,3.0\na,zorg,\n7,acme,2.5\nc,,4.0\n")
    columns, actual = features_in(tmp_path)
    assert actual.offsets.tolist()[:2] == [0, 3]
    prices = columns[1].knots
    assert prices[0] == 2.0, "the mean of its numbers"
    assert of_each(actual)[0] == {0: 1.0, 1: 1.0, 2: 1.0}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("what,brand\na,x\n", "no single column 'word'"),
        ("word\na\n", "no column besides 'word'"),
        ("word,x,x\na,1,2\n", "no single column 'x'"),
        ("", "cannot be read as csv"),
        ("word,brand\nunheard,x\n", "features of none of the 4 words"),
        ("word,brand\n", "has no row, in 1 file"),
        ("word,brand\na,\n", "no feature of the 4 words of the vocabulary that it names"),
        ("word,item,brand\na,b,x\n", "word and item, which both name words"),
    ],
)
def test_wrong_tables__are_refused(tmp_path, content, message):
    (tmp_path / "t.csv").write_text(content)
    with pytest.raises(InputError, match=message):
        features_in(tmp_path)


def test_columns__of_other_types_in_other_files_are_refused(tmp_path):
    (tmp_path / "1.csv").write_text("word,x\na,one\n")
    (tmp_path / "2.csv").write_text("word,x\nc,1.5\n")
    with pytest.raises(InputError, match=r"'x' is double in .*2.csv, and string in .*1.csv"):
        features_in(tmp_path)
    with pytest.raises(InputError, match="no column 'brand', which has a weight"):
        features_in(tmp_path / "1.csv", {"brand": 2.0})


def test_numbers__near_the_largest_have_a_mean(tmp_path):
    """Two of them have no sum in float64."""
    prices = [1.7e308, 1.7e308, -1.7e308, 0.0]
    pq.write_table(pa.table({"word": ["a", "a", "c", "7"], "price": prices}), tmp_path / "t.parquet")
    (column,), actual = features_in(tmp_path)
    assert np.isfinite(column.knots).all()
    assert of_each(actual) == [{15: 1.0}, {}, {0: 1.0}, {7: 0.5, 8: 0.5}]


def test_numbers__far_apart_have_knots_at_their_quantiles(tmp_path):
    words = [f"w{n}" for n in range(1000)]
    prices = np.arange(1000.0) ** 2
    pq.write_table(pa.table({"word": words, "price": prices}), tmp_path / "t.parquet")
    table = TableFeatures(Vocabulary.from_words(words, [1] * 1000), {})
    for source in find_sources(tmp_path):
        for some, columns in read_table(source, {}, 10.0):
            table.add(some, columns, source.url)
    (column,), actual = table.finish()
    assert len(column.knots) == 16
    np.testing.assert_allclose(column.knots, np.quantile(prices, np.linspace(0, 1, 16)))
    totals = np.bincount(np.repeat(np.arange(1000), np.diff(actual.offsets)), actual.weights)
    np.testing.assert_allclose(totals, 1.0, rtol=1e-6)
    knots = np.array(column.knots)
    again = np.bincount(np.repeat(np.arange(1000), np.diff(actual.offsets)), actual.weights * knots[actual.rows])
    np.testing.assert_allclose(again, prices, rtol=1e-4, atol=1.0)


def test_columns_that_are_left_out__have_no_rows_and_may_be_named(tmp_path):
    columns = {"word": ["a", "c"], "brand": ["x", "y"], "comment": ["p", "q"], "nothing": pa.nulls(2)}
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    actual, _ = features_in(tmp_path, {"comment": 0})
    assert [(column.name, column.size) for column in actual] == [("brand", 2), ("comment", 0), ("nothing", 0)]
    item = {"brand": "y", "comment": "p", "nothing": None}
    assert FeatureKeys(actual).find_values([item]).rows.tolist() == [1]
    with pytest.raises(ParameterError, match="no column"):
        FeatureKeys(actual).find_values([{"brandd": "y"}])
