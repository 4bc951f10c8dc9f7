import gzip

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskw2v.corpus.sources import find_sources, plan_blocks
from daskw2v.errors import InputError
from daskw2v.sequences.edges import find_node_kind, read_edges, squeeze_blanks
from daskw2v.sequences.settings import EdgeList

WEIGHTED = EdgeList(weight="weight")


def read(path, edges=WEIGHTED, block_bytes=1 << 20):
    sources, actual = find_sources(path), []
    kind = find_node_kind(sources, edges, {})
    for block in plan_blocks(sources, block_bytes):
        for columns in read_edges(block, edges, kind, {}):
            actual += zip(*(column.to_pylist() for column in columns), strict=True)
    return actual


@pytest.mark.parametrize("block_bytes", [1, 5, 1000])
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.txt", "# nodes\n1\t-2  0.5\r\n\n  3 1 2 \n% more\n1 2 3e-1 extra".replace(" extra", "")),
        ("a.edges", "1 -2 0.5 x\n3 1 2 x y\n1 2 0.3 x\n".replace(" x y", " y")),
        ("a.csv", "weight,source,other,target\n0.5,1,x,-2\n2,3,,1\n0.3, 1,x,2\n"),
        ("a.csv", '"source","target","weight"\n1,-2,0.5\n3,1,2\n1,2,0.3\n'),
    ],
)
def test_text__has_columns_by_position_and_csv_by_name(tmp_path, name, content, block_bytes):
    (tmp_path / name).write_text(content)
    assert read(tmp_path / name, block_bytes=block_bytes) == [(1, -2, 0.5), (3, 1, 2.0), (1, 2, 0.3)]


def test_text__may_be_packed(tmp_path):
    lines = "".join(f"{i} {i + 1} 1\n" for i in range(50_000))
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(lines.encode()))
    (tmp_path / "a.csv.gz").write_bytes(
        gzip.compress(b"source target weight\n".replace(b" ", b",") + lines.replace(" ", ",").encode())
    )
    expected = [(i, i + 1, 1.0) for i in range(50_000)]
    assert read(tmp_path / "a.txt.gz") == read(tmp_path / "a.csv.gz") == expected


def test_text__names_nodes_by_strings_if_asked(tmp_path):
    (tmp_path / "a.txt").write_text('007 "b\nnull é\n')
    assert read(tmp_path / "a.txt", EdgeList(strings=True)) == [("007", '"b'), ("null", "é")]


def test_csv__is_read_by_its_own_header_and_as_it_is_written(tmp_path):
    (tmp_path / "a.csv").write_text('source,target,price\n007,7,1\nNA,"a\nb",x\n')
    (tmp_path / "b.csv").write_text("\ufeffother, target ,source\n,null,nan\n")
    (tmp_path / "c.tsv").write_text("target\tsource\nx y\t 7\n")
    paths = [tmp_path / name for name in ("a.csv", "b.csv", "c.tsv")]
    expected = [("007", "7"), ("NA", "a\nb"), ("nan", "null"), (" 7", "x y")]
    assert read(paths, EdgeList(strings=True), block_bytes=1) == expected


@given(st.text(" \t\rab\n", max_size=30))
def test_squeeze_blanks__keeps_words_and_lines(text):
    lines = [line.split() for line in text.replace("\r", " ").split("\n")]
    assert squeeze_blanks(text.encode()).decode() == "".join(" ".join(words) + "\n" for words in lines)


NODES = [pa.int8(), pa.int64(), pa.uint32(), pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())]


@pytest.mark.parametrize("kind", NODES, ids=str)
def test_parquet__takes_integers_and_strings(tmp_path, kind):
    values = [1, 2, 3] if pa.types.is_integer(kind) else ["a", "b", "é"]
    nodes = pa.array(values).cast(kind)
    pq.write_table(
        pa.table({"x": nodes, "source": nodes, "target": nodes.take(pa.array([2, 1, 0])), "w": pa.array([1, 2, 3])}),
        tmp_path / "a.parquet",
    )
    assert read(tmp_path / "a.parquet", EdgeList(weight="w")) == list(
        zip(values, values[::-1], [1.0, 2.0, 3.0], strict=True)
    )


INT, FLOAT, UINT, TEXT = pa.int32(), pa.float64(), pa.uint64(), pa.string()


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ((INT, [1, 2]), (FLOAT, [3.0, 4.0]), [(1, 3), (2, 4)]),
        ((UINT, [2**63 + 1, 2]), (INT, [3, 4]), [(2**63 + 1, 3), (2, 4)]),
        ((INT, [1, 2]), (TEXT, ["01", "1"]), [("1", "01"), ("2", "1")]),
        ((FLOAT, [1.0, 2.0]), (TEXT, ["1", "b"]), [("1", "1"), ("2", "b")]),
    ],
)
def test_nodes__are_of_one_kind_in_all_columns_and_files(tmp_path, first, second, expected):
    columns = [pa.array(values, kind) for kind, values in (first, second)]
    pq.write_table(pa.table(columns, ["source", "target"]), tmp_path / "0.parquet")
    assert read(tmp_path / "0.parquet", EdgeList()) == expected
    for n, column in enumerate(columns):
        pq.write_table(pa.table([column, column], ["source", "target"]), tmp_path / f"{n}.parquet")
    assert read(tmp_path, EdgeList()) == [(node, node) for nodes in zip(*expected, strict=True) for node in nodes]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", "1 2 0.5\n3 4\n", "same number of columns, at least 3"),
        ("a.txt", "1 2\n", "Expected 3 columns, got 2"),
        ("a.txt", "1 b 3\n", "strings=True"),
        ("a.txt", "1 99999999999999999999 3\n", "strings=True"),
        ("a.txt", "1 2 0\n", "weight 0.0"),
        ("a.txt", "1 2 -1\n", "weight -1.0"),
        ("a.txt", "1 2 nan\n", "weight nan"),
        ("a.txt", "1 2 inf\n", "weight inf"),
        ("a.csv", "source,target\n1,2\n", "no single column 'weight'.*source, target"),
        ("a.csv", "source,target,weight\n1,,2\n", r"edges without target\."),
        ("a.csv", "source,target,weight\n1,2\n", "row 2 .*: 2 fields, where the header has 3"),
        ("a.csv", "1,2,3\n2,3,4\n", "no single column 'source'.*: 1, 2, 3.*first row of CSV and TSV names"),
        ("a.csv", "source,target,weight\n1,2,0.5\nsource,target,weight\n", "has a row that is a header"),
        ("a.txt", "source target weight\n1 2 0.5\n", "has a row that is a header.*other text has none"),
        ("a.txt", "from to w\n1 2 0.5\n", "A header has only CSV and TSV"),
        ("a.txt", "007 7 0.5\n", "the node '007', which is not written as an int64 is.*strings=True"),
        ("a.csv", "source,target,weight\n7,-0,1\n", "the node '-0'"),
        ("a.csv", "source,target,weight\n7,8,heavy\n", "a weight that is no number .*heavy"),
        ("a.jsonl", "{}\n", "jsonl, not a table"),
        ("a.txt", "\ufeff".encode("utf-16").decode("latin1"), "must be UTF-8|cannot be read"),
    ],
)
def test_text__that_is_no_edge_list_is_refused(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content.encode("latin1"))
    with pytest.raises(InputError, match=message):
        read(tmp_path / name)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"source": [1.5], "target": [1.5]}, "are of type double"),
        ({"source": [1], "target": [[1]]}, "are of type list"),
        ({"source": [1], "other": [1]}, "no single column 'target'.*source, other"),
        ({"source": ["a"], "target": [""]}, r"edges without target\."),
        ({"source": [1, None], "target": [1, 2]}, r"edges without source\."),
        ({"source": np.array([2**63], np.uint64), "target": [-1]}, "type int64, those of other .* uint64"),
        ({"source": [1.0, 2.0**53], "target": [1, 2]}, r"are of type double, and 9007199254740992\.0"),
        ({"source": [True], "target": [1]}, "are of type bool"),
    ],
)
def test_parquet__that_is_no_edge_list_is_refused(tmp_path, columns, message):
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    with pytest.raises(InputError, match=message):
        read(tmp_path / "a.parquet", EdgeList())
