"""Tables of features that are refused before text is read, by the schemas of their files."""

import pytest

from daskw2v import Params, Resources, train
from daskw2v.corpus.sources import find_sources
from daskw2v.errors import InputError
from daskw2v.features.table import check_table
from tests.support.refusals import refusal

pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")

GOOD = {"item": ["a", "b"], "x": ["u", "v"]}


def checked(path, weights=None):
    check_table(str(path), find_sources(str(path)), {}, 10.0, weights or {})


@pytest.mark.parametrize(
    ("second", "weights", "message"),
    [
        ({"itm": ["c"], "x": ["w"]}, {}, r"2.parquet has no single column 'word'"),
        ({"item": ["c"], "x": [1.5]}, {}, r"'x' is double in .*2.parquet, and string in .*1.parquet"),
        ({"item": [1.5], "x": ["w"]}, {}, r"words of .*2.parquet are of type double"),
        ({"item": ["c"], "y": [{"z": 1}]}, {}, r"'y' of .*2.parquet is of type struct.*feature_weights=\{'y': 0\}"),
        ({"item": ["c"], "y": ["w"]}, {"z": 2.0}, "no column 'z', which has a weight. Its features are: x, y"),
        ({"item": ["c"], "y": ["w"]}, {"x": 0.0, "y": 0.0}, "All columns of .* weigh 0: x, y"),
    ],
)
def test_any_file_of_a_folder__is_checked(tmp_path, second, weights, message):
    pq.write_table(pa.table(GOOD), tmp_path / "1.parquet")
    pq.write_table(pa.table(second), tmp_path / "2.parquet")
    with pytest.raises(InputError, match=message):
        checked(tmp_path, weights)


def test_a_half_written_file__is_named(tmp_path):
    pq.write_table(pa.table(GOOD), tmp_path / "1.parquet")
    (tmp_path / "2.parquet").write_bytes((tmp_path / "1.parquet").read_bytes()[:-8])
    with pytest.raises(InputError, match=r"2.parquet cannot be read as parquet"):
        checked(tmp_path)


def test_a_weight__of_a_column_that_only_one_file_has_is_fine(tmp_path):
    pq.write_table(pa.table(GOOD), tmp_path / "1.parquet")
    pq.write_table(pa.table({"item": ["c"], "y": ["w"], "x": pa.nulls(1)}), tmp_path / "2.parquet")
    assert refusal(checked, tmp_path, {"y": 2.0}) is None


@pytest.mark.parametrize("name", ["t.parquet", "t.csv", "t.tsv"])
def test_no_rows__are_refused(tmp_path, name):
    empty = pa.table({name: pa.array([], pa.string()) for name in ("item", "x")})
    if name == "t.parquet":
        pq.write_table(empty, tmp_path / name)
    else:
        (tmp_path / name).write_text("item,x\n".replace(",", "," if name == "t.csv" else "\t"))
    with pytest.raises(InputError, match=rf"{name} has no row"):
        checked(tmp_path / name)


def test_text_of_another_encoding__is_said_to_be_that(tmp_path):
    (tmp_path / "t.csv").write_bytes("item,x\na,ü\n".encode("latin-1"))
    with pytest.raises(InputError, match=r"'x' of .*t.csv holds bytes, or text that is not UTF-8"):
        checked(tmp_path)
    (tmp_path / "t.csv").write_bytes("item,x,y\na,ü,v\n".encode("latin-1"))
    checked(tmp_path, {"x": 0.0})


def test_columns_that_folders_name__are_not_lost_unsaid(tmp_path):
    for brand in ("acme", "zorg"):
        (tmp_path / f"brand={brand}").mkdir()
        pq.write_table(pa.table(GOOD), tmp_path / f"brand={brand}" / "part.parquet")
    with pytest.raises(InputError, match=r"names of folders tell 'brand'.*feature_weights=\{'brand': 0\}"):
        checked(tmp_path)
    checked(tmp_path, {"brand": 0.0})
    checked(tmp_path / "brand=acme")


def test_a_wrong_table__is_named_before_text_is_read(tmp_path):
    (tmp_path / "text.txt").write_text("a b c\n")
    pq.write_table(pa.table(GOOD).slice(0, 0), tmp_path / "t.parquet")
    with pytest.raises(InputError, match="has no row"):
        train(
            str(tmp_path / "text.txt"),
            work=str(tmp_path / "work"),
            resources=Resources(threads=1),
            params=Params(features=str(tmp_path / "t.parquet")),
            listener=None,
        )
    assert not (tmp_path / "work").exists()
