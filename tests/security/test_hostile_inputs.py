"""Files that unpack to far more than they are: they are streamed, or refused, in bounded memory."""

import bz2
import gzip
import io
import json
import lzma
import struct
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from daskw2v.cli.config_file import read_config
from daskw2v.config.resources import Resources
from daskw2v.corpus.files import TextBlock
from daskw2v.corpus.formats import read_block
from daskw2v.corpus.pieces import ReadReport
from daskw2v.corpus.sources import find_sources, plan_blocks
from daskw2v.corpus.tokenizers import make_tokenizer
from daskw2v.errors import InputError, ParameterError
from daskw2v.evaluation import datasets
from daskw2v.evaluation.datasets import DATASETS
from daskw2v.evaluation.similarity import read_pairs
from daskw2v.models.formats.word2vec import import_word2vec
from daskw2v.sequences.edges import read_edges
from daskw2v.sequences.settings import EdgeList
from daskw2v.vocabulary.word_lists import read_list
from tests.security.hostile import attempt, outcomes_of

_MB = 1 << 20
_GROWTH = 350 * _MB


def _read(path):
    """Read a file as a worker does; return how many bytes of text it held."""
    report = ReadReport()
    for block in plan_blocks(find_sources(path), 64 * _MB):
        for _ in read_block(
            block,
            column="text",
            errors="replace",
            tokenizer=make_tokenizer("whitespace"),
            storage_options={},
            report=report,
        ):
            pass
    return report.bytes_read


def _gzip(path, piece, n):
    """Write members of a piece each: together they are one text."""
    path.write_bytes(gzip.compress(piece) * n)


def _words(path):
    _gzip(path / "a.txt.gz", b"word " * (_MB // 5), 200)
    return _read(path / "a.txt.gz")


def _one_word(path):
    _gzip(path / "a.txt.gz", b"a" * _MB, 200)
    return _read(path / "a.txt.gz")


def _one_line(path):
    _gzip(path / "a.jsonl.gz", b"[" * _MB, 200)
    return _read(path / "a.jsonl.gz")


def _one_row(path):
    (path / "a.csv.gz").write_bytes(gzip.compress(b'text\n"') + gzip.compress(b"a\n" * (_MB // 2)) * 200)
    return _read(path / "a.csv.gz")


def _rows(path):
    _gzip(path / "a.csv.gz", b"text\n" + b"a\n" * (_MB // 2), 100)
    return _read(path / "a.csv.gz")


def _bz2(path):
    (path / "a.txt.bz2").write_bytes(bz2.compress(b"a " * _MB) * 100)
    return _read(path / "a.txt.bz2")


def _xz(path):
    (path / "a.txt.xz").write_bytes(lzma.compress(b"a " * _MB) * 100)
    return _read(path / "a.txt.xz")


def _dictionary(path):
    values = pa.DictionaryArray.from_arrays(pa.array([0] * 60_000, pa.int32()), ["word " * 2000])
    pq.write_table(pa.table({"text": values}), path / "a.parquet", compression="zstd")
    return _read(path / "a.parquet")


def _header(path):
    with gzip.open(path / "a.txt.gz", "wb") as file:
        file.write(b"999999999999 1000\n")
    return len(import_word2vec(path / "a.txt.gz"))


def _one_pair(path):
    _gzip(path / "a.tsv.gz", b"a" * _MB, 200)
    return len(read_pairs(path / "a.tsv.gz"))


def _one_vector(path):
    with gzip.open(path / "a.txt.gz", "wb") as file:
        file.write(b"1 2\nword ")
    with open(path / "a.txt.gz", "ab") as file:
        file.write(gzip.compress(b"1" * _MB) * 1500)
    return len(import_word2vec(path / "a.txt.gz"))


def _dimensions(path):
    with gzip.open(path / "a.txt.gz", "wb") as file:
        file.write(b"1 100000000\nword")
    with open(path / "a.txt.gz", "ab") as file:
        file.write(gzip.compress(b" 1" * (_MB // 2)) * 200)
    return len(import_word2vec(path / "a.txt.gz"))


def _list(path):
    _gzip(path / "a.txt.gz", b"a\nb\nc\nd\n" * (_MB // 8), 200)
    return len(read_list(str(path / "a.txt.gz"), Resources()))


def _columns(path):
    (path / "a.txt").write_bytes(b"1 2" + b" 3" * (8 * _MB) + b"\n")
    return _edges(path / "a.txt")


def _header_of_edges(path):
    (path / "a.csv").write_bytes(b"source,target" + b",x" * (8 * _MB) + b"\n1,2\n")
    return _edges(path / "a.csv")


def _edges(path):
    (source,) = find_sources(path)
    return sum(len(batch[0]) for batch in read_edges(TextBlock(source, 0, source.size), EdgeList(), "int64", {}))


BOMBS = {
    "one vector": (_one_vector, False),
    "dimensions of word2vec": (_dimensions, False),
    "list of words": (_list, True),
    "columns of edges": (_columns, False),
    "header of edges": (_header_of_edges, False),
    "words": (_words, True),
    "one word": (_one_word, False),
    "one line of JSON": (_one_line, False),
    "one row of CSV": (_one_row, False),
    "rows of CSV": (_rows, True),
    "bz2": (_bz2, True),
    "xz": (_xz, True),
    "Parquet's dictionary": (_dictionary, True),
    "header of word2vec": (_header, False),
    "one pair": (_one_pair, False),
}


def main(folder):
    """Read each bomb; print what came of it, and by how many bytes memory grew."""
    outcomes = {}
    for name, (read, _) in BOMBS.items():
        place = Path(folder) / name
        place.mkdir()
        outcomes[name] = attempt(lambda read=read, place=place: read(place))
    print(json.dumps(outcomes))


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """What reading each bomb came to, in a process of its own."""
    return outcomes_of(__file__, tmp_path_factory.mktemp("bombs"))


@pytest.mark.slow
@pytest.mark.parametrize("name", BOMBS)
def test_bomb__is_streamed_or_refused(outcomes, name):
    outcome, grown = outcomes[name]
    assert outcome.isdigit() if BOMBS[name][1] else outcome.startswith("InputError")
    assert grown < _GROWTH


def _nested(depth):
    return '{"text": ' + "[" * depth + "]" * depth + "}\n"


@pytest.mark.parametrize("depth", [10, 10**3, 10**5])
def test_json__of_any_depth_is_left_out(tmp_path, depth):
    (tmp_path / "a.jsonl").write_text(_nested(depth) + '{"text": "a"}\n')
    assert _read(tmp_path / "a.jsonl") == 2 * depth + 11 + 14


def test_archive__is_measured_before_it_is_unpacked():
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("set/a.txt", b"0" * 1000)
    content = bytearray(packed.getvalue())
    assert datasets.unpack("zip", bytes(content)) == {"a.txt": b"0" * 1000}
    size = content.index(b"PK\x01\x02") + 24  # in the directory at the end of the file
    assert content[size : size + 4] == struct.pack("<I", 1000)
    content[size : size + 4] = struct.pack("<I", (1 << 28) + 1)
    with pytest.raises(ValueError, match="more than 268,435,456 bytes"):
        datasets.unpack("zip", bytes(content))


def test_list__of_words_is_bounded(tmp_path):
    _gzip(tmp_path / "words.txt.gz", b"word\n", 100)
    assert read_list(str(tmp_path / "words.txt.gz"), Resources()) == ["word"]
    with pytest.raises(InputError, match=r"longer than 100 bytes"):
        read_list(str(tmp_path / "words.txt.gz"), Resources(), max_bytes=100)


def test_config__is_bounded(tmp_path):
    path = tmp_path / "config.toml"
    path.write_bytes(b"#" * _MB)
    assert read_config(path) == {}
    path.write_bytes(b"#" * (_MB + 1))
    with pytest.raises(ParameterError, match=r"has more than 1,048,576 bytes\. Give a file of settings"):
        read_config(path)


def test_config__of_any_depth_is_refused(tmp_path):
    path = tmp_path / "config.toml"
    path.write_text("window = " + "[" * 10**5)
    with pytest.raises(ParameterError, match=r"is nested too deeply|is not TOML"):
        read_config(path)


def test_download__is_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(datasets, "MAX_BYTES", 9)
    name = next(name for name, dataset in DATASETS.items() if dataset.url)
    fsspec.filesystem("memory").pipe_file("/large", b"0" * 10)
    monkeypatch.setitem(DATASETS, name, replace(DATASETS[name], url="memory://large", checksum=None))
    with pytest.raises(InputError, match="has more than 9 bytes"):
        datasets.datasets(name, folder=tmp_path)


def test_list__that_is_no_archive_is_refused(tmp_path):
    (tmp_path / "words.txt.gz").write_bytes(b"word\n")
    with pytest.raises(InputError, match="no valid gzip data"):
        read_list(str(tmp_path / "words.txt.gz"), Resources())


if __name__ == "__main__":
    main(sys.argv[1])
