"""A row with a weight counts as often as if it stood so many times."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.feather as feather
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskw2v import Params, Resources, train
from daskw2v.corpus.formats.columns import MAX_WEIGHT, repeat_rows
from daskw2v.errors import InputError, ParameterError
from tests.support.reading import read, sentences

ROWS = [("a b", 3), ("c", 0), ("d e f", 1), ("g", None), ("h i", 2)]


def write(path, rows, key="n"):
    """Write rows of text, and of tokens, with their weights, in the format of the path's suffix."""
    texts, weights = [text for text, _ in rows], [n for _, n in rows]
    table = pa.table({"text": texts, "tokens": [text.split() for text in texts], key: pa.array(weights, pa.int32())})
    match path.suffix:
        case ".parquet":
            pq.write_table(table, path, row_group_size=2)
        case ".orc":
            orc.write_table(table, path)
        case ".feather":
            feather.write_feather(table, path, chunksize=2)
        case ".csv":
            pa_csv.write_csv(table.select(["text", key]), path)
        case ".jsonl":
            lines = ({"text": t, "tokens": t.split(), "deep": {key: n or 0}, key: n or 0} for t, n in rows)
            path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def read_rows(path, column="text", weight="n", errors="strict"):
    """Read a file's sentences, as text."""
    pieces, _ = read(path, column, errors, also={"weight": weight})
    return [" ".join(words) for words in sentences(pieces)]


FILES = ["rows.parquet", "rows.orc", "rows.feather", "rows.csv", "rows.jsonl"]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("column", ["text", "tokens"])
def test_rows__stand_as_often_as_they_count(name, column, tmp_path):
    if (name, column) == ("rows.csv", "tokens"):
        return  # CSV has no lists
    path = write(tmp_path / name, ROWS)
    assert read_rows(path, column) == [text for text, n in ROWS for _ in range(n or 0)]
    assert read_rows(path, column, None) == [text for text, _ in ROWS]


def test_weights__may_be_nested(tmp_path):
    assert read_rows(write(tmp_path / "rows.jsonl", ROWS), weight="deep.n") == ["a b"] * 3 + ["d e f"] + ["h i"] * 2


@settings(max_examples=30)
@given(st.lists(st.integers(0, 9000), max_size=8))
def test_repeat_rows__is_bounded_and_complete(weights):
    array, parts = pa.array(range(len(weights)), pa.int64()), []
    for part in repeat_rows(array, np.array(weights, np.int64)):
        assert len(part) <= 1 << 12
        parts += part.to_pylist()
    assert parts == [i for i, n in enumerate(weights) for _ in range(n)]


@pytest.mark.parametrize("name", FILES)
def test_bad_weights__are_named(name, tmp_path):
    for bad in (-1, MAX_WEIGHT + 1):
        with pytest.raises(InputError, match=rf"'n'.*{bad}.* no weight"):
            read_rows(write(tmp_path / name, [("a", 1), ("b", bad)]))
    with pytest.raises(InputError, match=r"no (column|key) 'm'"):
        read_rows(write(tmp_path / name, ROWS), weight="m")


def test_weights_of_another_type__are_refused(tmp_path):
    pq.write_table(pa.table({"text": ["a"], "n": [0.5]}), tmp_path / "rows.parquet")
    with pytest.raises(InputError, match=r"'n' of .* is of type double"):
        read_rows(tmp_path / "rows.parquet")
    (tmp_path / "rows.csv").write_text("text,n\na,much\n")
    with pytest.raises(InputError, match="holds what is no weight"):
        read_rows(tmp_path / "rows.csv")
    (tmp_path / "rows.jsonl").write_text('{"text": "a", "n": true}\n{"text": "b", "n": 1}\n')
    assert read_rows(tmp_path / "rows.jsonl", errors="skip") == ["b"]


def test_vectors__are_those_of_repeated_rows(client, tmp_path):
    rows = [(f"w{i % 7} w{i % 5} w{i % 3} x", i % 4) for i in range(60)]
    write(tmp_path / "rows.parquet", rows)
    (tmp_path / "rows.txt").write_text("".join(f"{text}\n" * n for text, n in rows))
    params = Params(vector_size=4, min_count=1, epochs=1, sample=0)
    asked = {"resources": Resources(threads=1), "client": client, "listener": None}
    weighted = train(tmp_path / "rows.parquet", work=tmp_path / "a", params=params.replace(weight="n"), **asked)
    plain = train(tmp_path / "rows.txt", work=tmp_path / "b", params=params, **asked)
    assert weighted.vocabulary.words == plain.vocabulary.words
    assert weighted.vectors.tobytes() == plain.vectors.tobytes()
    with pytest.raises(ParameterError, match="weight='n' changes nothing for format='text'"):
        train(tmp_path / "rows.txt", work=tmp_path / "b", params=params.replace(weight="n"), **asked)


def test_heavy_rows__are_made_in_parts_of_bounded_size(tmp_path):
    array = pa.array(["x" * (1 << 18), "y"])
    assert max(part.nbytes for part in repeat_rows(array, np.array([300, 5], np.int64))) <= 3 << 20
    path = write(tmp_path / "rows.jsonl", [("z" * 1000, 20_000)])
    pieces, _ = read(path, also={"weight": "n"})
    assert max(len(piece.data) for piece in pieces) < 5 << 20
    assert sum(len(sentences([piece])) for piece in pieces) == 20_000
