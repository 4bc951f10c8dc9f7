"""Rows of tables and records in memory count as often as a weight says, as those of files do."""

import dask.bag
import numpy as np
import pyarrow as pa
import pytest

from daskw2v import Params, Resources, train
from daskw2v.collections.kinds import check_texts
from daskw2v.collections.parts import tables_of
from daskw2v.errors import InputError, ParameterError

ROWS = [{"doc": {"body": f"w{i % 7} w{i % 5} w{i % 3} x"}, "n": i % 4} for i in range(60)]
TEXTS = [row["doc"]["body"] for row in ROWS]
PARAMS = Params(vector_size=4, min_count=1, epochs=1, sample=0, column="doc.body", weight="n")


def kinds():
    """Return the rows as each type that has columns, by name."""
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars", reason="it is no part of daskw2v's extras")
    table, frames = pa.Table.from_pylist(ROWS), pytest.importorskip("dask.dataframe")
    flat = pd.DataFrame({"doc.body": TEXTS, "n": [row["n"] for row in ROWS]})
    return {
        "records": ROWS,
        "records, once": iter(ROWS),
        "a bag": dask.bag.from_sequence(ROWS, npartitions=3),
        "Arrow": table,
        "chunks": pa.concat_tables([table.slice(0, 7), table.slice(7, 30), table.slice(37)]),
        "batches": [table.to_batches()[0]],
        "pandas": pd.DataFrame(ROWS),
        "polars": pl.DataFrame(table),
        "dask": frames.from_pandas(flat, npartitions=2),
    }


def trained(inputs, work, client, params=PARAMS):
    result = train(inputs, work=work, params=params, resources=Resources(threads=1), client=client, listener=None)
    return result.vocabulary.words, np.asarray(result.vectors).tobytes()


@pytest.mark.slow
def test_vectors__are_those_of_repeated_rows(client, tmp_path):
    repeated = (row["doc"]["body"] for row in ROWS for _ in range(row["n"]))
    expected = trained(repeated, tmp_path / "repeated", client, PARAMS.replace(weight=None, column="text"))
    assert [name for name, kind in kinds().items() if trained(kind, tmp_path / name, client) != expected] == []


@pytest.mark.slow
def test_weights__make_another_corpus(client, tmp_path):
    plain = trained(ROWS, tmp_path, client, PARAMS.replace(weight=None))
    assert trained(ROWS, tmp_path, client) != plain
    heavier = [{**row, "n": row["n"] + 1} for row in ROWS]
    assert trained(heavier, tmp_path, client) != trained(ROWS, tmp_path, client)
    assert len(list((tmp_path / "inputs").iterdir())) == 3


def test_tables_of__hold_text_and_weights_side_by_side():
    missing = pa.table({"text": pa.chunked_array([["a"], ["b", None]]), "n": pa.chunked_array([[2, None], [1]])})
    (result,) = tables_of(missing, "text", "n")
    assert result.to_pydict() == {"text": ["a", "b", ""], "n": [2, 0, 1]}


@pytest.mark.parametrize(
    ("rows", "weight", "told"),
    [
        ([{"text": "a", "n": -1}], "n", r"'n' of the input is -1, which is no weight"),
        ([{"text": "a", "n": 0.5}], "n", r"'n' of the input is of type double"),
        ([{"text": "a"}], "n", "no column 'n'"),
        (["a"], "n", "A sentence is a str, without 'n'"),
        ([["a"]], "n", "A sentence is a list, without 'n'"),
    ],
)
def test_bad_weights__are_named(rows, weight, told):
    with pytest.raises(InputError, match=told):
        list(tables_of(rows, "text", weight))


def test_weights_without_column__are_refused_before_text_is_read():
    pd = pytest.importorskip("pandas")
    asked = Params(weight="n")
    for inputs in (pd.Series(["a"]), pa.array(["a"])):
        with pytest.raises(ParameterError, match="weight='n' is a column of tables, but the input is a "):
            check_texts(inputs, asked, Resources())
    with pytest.raises(InputError, match="no column 'n'"):
        check_texts(pd.DataFrame({"text": ["a"]}), asked, Resources())
    with pytest.raises(ParameterError, match="weight='text' is the column of the text"):
        check_texts(pd.DataFrame({"text": ["a"]}), Params(weight="text"), Resources())
