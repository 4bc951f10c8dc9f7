"""A path names a nested column of tables and records, as it does in files."""

import dask
import pyarrow as pa
import pytest

from daskw2v import Params
from daskw2v.collections.kinds import check_texts, dask_partitions
from daskw2v.collections.parts import tables_of
from daskw2v.config.resources import Resources
from daskw2v.errors import InputError

RECORDS = [{"id": n, "doc": {"body": text, "a.b": {"c": [text]}}} for n, text in enumerate(["a b", "c"])]
TEXTS = ["a b", "c"]


def kinds():
    """Return the records as each type that has columns."""
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars", reason="it is no part of daskw2v's extras")
    table = pa.Table.from_pylist(RECORDS)
    return [RECORDS, table, table.to_batches()[0], pd.DataFrame(RECORDS), pl.DataFrame(table)]


def texts_of(held, column):
    """Return the text of all rows."""
    return [text for part in tables_of(held, column) for text in part[column].to_pylist()]


def test_path__leads_into_tables_and_records():
    for held in kinds():
        assert texts_of(held, "doc.body") == TEXTS
        assert texts_of(held, "doc.a.b.c") == [[text] for text in TEXTS]


def test_path_that_leads_nowhere__is_refused():
    for held in kinds():
        with pytest.raises(InputError, match=r"no (column|key) 'doc\.title'"):
            list(tables_of(held, "doc.title"))
        with pytest.raises(InputError, match="no column 'title'"):
            list(tables_of(held, "title"))


def test_name_with_dots__comes_before_a_path():
    held = pa.table({"a": [{"b": "inner"}], "a.b": ["own"]})
    assert texts_of(held, "a.b") == ["own"]


def test_collection_of_dask__computes_the_one_column():
    pd, frames = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    with dask.config.set({"dataframe.convert-string": False}):  # which makes text of records
        frame = frames.from_pandas(pd.DataFrame(RECORDS), npartitions=1)
        check_texts(frame, Params(column="doc.body"), Resources())
        (task,) = dask_partitions(frame, "doc.body")
        part = task.compute()
    assert list(part.columns) == ["doc"]
    assert texts_of(part, "doc.body") == TEXTS
