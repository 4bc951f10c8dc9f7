"""Columns inside of others, by their paths: the same in JSONL and in every format of tables."""

import json

import pyarrow as pa
import pyarrow.feather
import pyarrow.orc
import pyarrow.parquet as pq
import pytest

from daskw2v.corpus.formats.columns import NoFieldError, find_field
from daskw2v.errors import InputError
from tests.support import reading
from tests.support.reading import sentences


def jsonl(path, rows):
    path = path / "a.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def parquet(path, rows):
    pq.write_table(pa.Table.from_pylist(rows), path / "a.parquet")
    return path / "a.parquet"


def arrow(path, rows):
    pa.feather.write_feather(pa.Table.from_pylist(rows), path / "a.feather")
    return path / "a.feather"


def stream(path, rows):
    table = pa.Table.from_pylist(rows)
    with pa.ipc.new_stream(path / "a.arrows", table.schema) as writer:
        writer.write_table(table)
    return path / "a.arrows"


def orc(path, rows):
    pa.orc.write_table(pa.Table.from_pylist(rows), path / "a.orc")
    return path / "a.orc"


FORMATS = pytest.mark.parametrize("write", [jsonl, parquet, arrow, stream, orc])


def read(path, column, errors="strict"):
    return sentences(reading.read(path, column, errors)[0])


def _fields(value):
    return value if isinstance(value, dict) else {}


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("a.b", ["a.b"]),  # a name of its own comes before the path
        ("a.c", ["a", "c"]),
        ("d.e.f", ["d.e", "f"]),
        ("d.e.g.h", ["d.e", "g.h"]),
        ("d.i", ["d", "i"]),
        (".", ["."]),
        (".j", ["", "j"]),
    ],
)
def test_find_field__takes_the_longest_name_that_fits(path, names):
    leaf = 1
    root = {
        "a": {"b": 2, "c": leaf},
        "a.b": leaf,
        "d.e": {"f": leaf, "g.h": leaf},
        "d": {"i": leaf, "e": {"f": 2}},
        ".": leaf,
        "": {"j": leaf},
    }
    assert find_field(path, root, _fields) == (names, leaf)


@pytest.mark.parametrize(
    ("path", "present"),
    [("x", ["a", "b"]), ("b.x", ["a", "b"]), ("a.x", ["a.c", "a.d"]), ("a.d.x", ["a.d.e"]), ("a.", ["a.c", "a.d"])],
)
def test_find_field__tells_the_fields_where_a_path_ends(path, present):
    with pytest.raises(NoFieldError) as error:
        find_field(path, {"a": {"c": 1, "d": {"e": 1}}, "b": 1}, _fields)
    assert list(error.value.present) == present


@FORMATS
def test_path__leads_to_text_and_to_lists(tmp_path, write):
    rows = [
        {"id": 1, "doc": {"title": "x", "body": "one two", "parts": {"tokens": ["a b", "c"]}}},
        {"id": 2, "doc": {"title": "y", "body": "three", "parts": {"tokens": ["d"]}}},
    ]
    path = write(tmp_path, rows)
    assert read(path, "doc.body") == [["one", "two"], ["three"]]
    assert read(path, "doc.parts.tokens") == [["a b", "c"], ["d"]]


@FORMATS
def test_path__gives_way_to_a_column_of_that_name(tmp_path, write):
    path = write(tmp_path, [{"doc": {"body": "inner"}, "doc.body": "outer"}])
    assert read(path, "doc.body") == [["outer"]]


@FORMATS
def test_path__goes_through_names_that_have_dots(tmp_path, write):
    path = write(tmp_path, [{"a.b": {"c.d": "deep"}, "a": {"b": "shallow"}}])
    assert read(path, "a.b.c.d") == [["deep"]]


@FORMATS
def test_path__that_leads_nowhere_is_refused_and_what_is_there_is_named(tmp_path, write):
    path = write(tmp_path, [{"id": 1, "doc": {"title": "x", "body": "one"}}])
    with pytest.raises(InputError, match=r"'doc\.text'.* are: .*doc\.title.*doc\.body"):
        read(path, "doc.text")
    with pytest.raises(InputError, match=r"'id\.text'.* are: .*id.*doc"):
        read(path, "id.text")
    with pytest.raises(InputError, match=r"'doc'.* (is of type struct|is neither a string)"):
        read(path, "doc")


def test_parquet__skips_text_whose_struct_is_null(tmp_path):
    body = pa.array(["one", "hidden", "three"])
    doc = pa.StructArray.from_arrays([body], ["body"], mask=pa.array([False, True, False]))
    pq.write_table(pa.table({"doc": doc}), tmp_path / "a.parquet")
    assert read(tmp_path / "a.parquet", "doc.body") == [["one"], ["three"]]


def test_jsonl__drops_lines_whose_object_is_null_as_it_drops_null_text(tmp_path):
    path = jsonl(tmp_path, [{"doc": {"body": "one"}}, {"doc": None}, {"doc": {"body": None}}, {"doc": {"body": "two"}}])
    assert read(path, "doc.body", errors="skip") == [["one"], ["two"]]
    with pytest.raises(InputError, match=r"no key 'doc\.body'; the keys are: 'doc'"):
        read(path, "doc.body")


def test_parquet__with_two_fields_of_a_name_is_refused(tmp_path):
    array = pa.array(["one"])
    doc = pa.StructArray.from_arrays([array, array], names=["body", "body"])
    pq.write_table(pa.table({"doc": doc}), tmp_path / "a.parquet")
    with pytest.raises(InputError, match=r"has 2 columns 'doc\.body'"):
        read(tmp_path / "a.parquet", "doc.body")
