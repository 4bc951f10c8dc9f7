import gzip
import os
import re
import sys
import threading
from dataclasses import replace

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fsspec.implementations.memory import MemoryFile

from daskw2v.corpus import sources as module
from daskw2v.corpus.files import Source, TextBlock, get_version, open_source
from daskw2v.corpus.sources import find_sources, plan_blocks
from daskw2v.errors import InputError, MissingExtraError, ParameterError, StoreError


@pytest.fixture
def memory():
    fs = fsspec.filesystem("memory")
    yield fs
    fs.store.clear()


def test_find_sources__tells_all_about_a_local_file(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"one two\n")
    (source,) = find_sources(path, None, {})
    assert (source.url, source.size, source.format, source.compression) == (str(path), 8, "text", None)
    assert source.version


def test_find_sources__keeps_the_order_given_and_sorts_globs(tmp_path):
    for name in ("b.txt", "a.txt", "z.log"):
        (tmp_path / name).write_text("x\n")
    (tmp_path / "c.txt").mkdir()
    sources = find_sources([tmp_path / "z.log", str(tmp_path / "*.txt")])
    assert [os.path.basename(s.url) for s in sources] == ["z.log", "a.txt", "b.txt"]


def test_find_sources__takes_a_file_once_however_it_is_named_and_says_so(tmp_path, monkeypatch):
    (tmp_path / "text").mkdir()
    for name in ("a.txt", "b.txt"):
        (tmp_path / "text" / name).write_text("x\n")
    (tmp_path / "again").symlink_to("text")
    monkeypatch.chdir(tmp_path)
    other_names = ["text/a.txt", "text/../text/b.txt", "again/*", f"file://{tmp_path}/text/a.txt", tmp_path / "text"]
    for name in other_names:
        messages = []
        sources = find_sources([tmp_path / "text", name], listener=messages.append)
        assert [os.path.basename(s.url) for s in sources] == ["a.txt", "b.txt"]
        assert re.search(r"[ab]\.txt(, and 1 other file)?: named more than once, and read once\.$", messages[0].message)


def test_find_sources__takes_a_link_beside_its_file_once(tmp_path):
    (tmp_path / "monday.txt").write_text("x\n")
    (tmp_path / "latest.txt").symlink_to("monday.txt")
    assert [os.path.basename(s.url) for s in find_sources(tmp_path)] == ["latest.txt"]


def test_find_sources__takes_a_file_of_a_bucket_once(memory):
    memory.pipe("/corpus/a.txt", b"one\n")
    assert len(find_sources(["memory://corpus/*", "memory://corpus/a.txt"])) == 1


@pytest.mark.parametrize("pattern", ["", "/*"])
@pytest.mark.parametrize("target", ["gone.txt", "b.txt"])  # nothing, and itself
def test_find_sources__passes_over_links_that_lead_nowhere_and_says_so(tmp_path, pattern, target):
    (tmp_path / "a.txt").write_text("x\n")
    (tmp_path / "b.txt").symlink_to(target)
    with pytest.raises(
        InputError, match=rf"b\.txt is a link to {target}, which is not there\. Remove the link, or give"
    ):
        find_sources(f"{tmp_path}{pattern}")
    for errors in ("replace", "skip"):
        messages = []
        sources = find_sources(f"{tmp_path}{pattern}", errors=errors, listener=messages.append)
        assert [os.path.basename(s.url) for s in sources] == ["a.txt"]
        assert messages[0].message.endswith(f"b.txt is a link to {target}, which is not there. It is passed over.")


def test_find_sources__takes_relative_paths_and_file_urls(tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text("x\n")
    monkeypatch.chdir(tmp_path)
    assert find_sources("a.txt") == find_sources(f"file://{tmp_path}/a.txt") == find_sources(tmp_path / "a.txt")


def test_find_sources__takes_a_name_that_looks_like_a_pattern(tmp_path):
    (tmp_path / "a[1].txt").write_text("x\n")
    (source,) = find_sources(tmp_path / "a[1].txt")
    assert source.url.endswith("a[1].txt")


def test_find_sources__keeps_the_protocol(memory):
    memory.pipe("/corpus/a.txt", b"one\n")
    (source,) = find_sources("memory://corpus/*.txt")
    assert (source.url, source.size) == ("memory://corpus/a.txt", 4)
    with open_source(source, {}) as file:
        assert file.read() == b"one\n"


def test_url_prefix__keeps_the_host_where_the_path_does_not_hold_it():
    class Hdfs:
        protocol = "hdfs"

    assert module._url_prefix("hdfs://node:8020/data/*", Hdfs(), "/data/*") == "hdfs://node:8020"


def test_url_prefix__asks_the_filesystem_where_the_name_is_written_otherwise():
    fs = fsspec.filesystem("memory")
    assert module._url_prefix("memory://a/b/", fs, "/a/b") + "/a/b" == fs.unstrip_protocol("/a/b")


@pytest.mark.parametrize(
    ("name", "format", "compression"),
    [
        ("a", "text", None),
        ("a.txt.gz", "text", "gzip"),
        ("A.JSONL.BZ2", "jsonl", "bz2"),
        ("a.ndjson.xz", "jsonl", "xz"),
        ("a.json", "jsonl", None),
        ("a.log.zst", "text", "zstd"),
        ("a.parquet", "parquet", None),
        ("a.pq", "parquet", None),
        ("a.arrow", "arrow", None),
        ("a.arrows", "arrow", None),
        ("a.feather", "arrow", None),
        ("a.IPC", "arrow", None),
        ("a.orc", "orc", None),
        ("a.csv", "csv", None),
        ("A.TSV.gz", "tsv", "gzip"),
    ],
)
def test_find_sources__knows_formats_by_name(tmp_path, name, format, compression):
    (tmp_path / name).write_bytes(b"")
    (source,) = find_sources(tmp_path / name)
    assert (source.format, source.compression) == (format, compression)


def test_find_sources__takes_the_format_given(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"")
    assert find_sources(tmp_path / "a.txt", "jsonl")[0].format == "jsonl"


def test_find_sources__refuses_an_unknown_format(tmp_path):
    with pytest.raises(ParameterError, match=r"format='xml'.*text, jsonl, csv, tsv, parquet, arrow, orc"):
        find_sources(tmp_path, "xml")


def test_find_sources__refuses_no_input():
    with pytest.raises(InputError, match="No input"):
        find_sources([])


@pytest.mark.parametrize("name", ["none.txt", "*.none", "directories*"])
def test_find_sources__refuses_what_matches_nothing(tmp_path, name):
    (tmp_path / "directories1").mkdir()
    with pytest.raises(InputError, match="matches no file"):
        find_sources(tmp_path / name)


def test_find_sources__refuses_chains():
    with pytest.raises(InputError, match="chain of filesystems"):
        find_sources("zip://a.txt::file:///a.zip")


@pytest.mark.parametrize("name", ["a.zip", "a.tar.gz", "a.tgz", "a.lz4"])
def test_find_sources__refuses_packed_files(tmp_path, name):
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(InputError, match=r"is packed as .*Unpack"):
        find_sources(tmp_path / name)


def test_find_sources__refuses_compressed_parquet(tmp_path):
    (tmp_path / "a.parquet.gz").write_bytes(b"")
    with pytest.raises(InputError, match="Parquet inside gzip"):
        find_sources(tmp_path / "a.parquet.gz")


def test_find_sources__refuses_a_file_of_unknown_size():
    with pytest.raises(InputError, match="no known size"):
        module._make_source("https://host/a.txt", {"size": None}, None)


def test_find_sources__names_missing_extras(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "zstandard", None)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "a.txt.zst").write_bytes(b"")
    (tmp_path / "a.parquet").write_bytes(b"")
    with pytest.raises(MissingExtraError, match=r"daskw2v\[zstd\]"):
        find_sources(tmp_path / "a.txt.zst")
    with pytest.raises(MissingExtraError, match=r"daskw2v\[arrow\]"):
        find_sources(tmp_path / "a.parquet")


def test_version__prefers_what_the_content_is_known_by():
    assert get_version({"mtime": 1.5, "ETag": '"x"'}) == '"x"'
    assert get_version({"mtime": 1.5}) == "1.5"
    assert get_version({}) == ""


def test_open_source__refuses_a_file_that_changed_or_is_gone(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("x\n")
    (source,) = find_sources(path)
    path.write_text("xx\n")
    with pytest.raises(InputError, match="changed since"), open_source(source, {}):
        pass
    path.unlink()
    with pytest.raises(InputError, match="is gone"), open_source(source, {}):
        pass


def test_block_key__changes_with_what_is_read_and_with_nothing_else():
    source = Source("/a.txt", 10, "v", "text", None)
    key = TextBlock(source, 0, 5).key
    assert len(key) == 20
    assert int(key, 16) >= 0
    assert key == TextBlock(replace(source), 0, 5).key
    changed = [{"url": "/b.txt"}, {"size": 11}, {"version": "w"}, {"format": "jsonl"}]
    changed_blocks = [TextBlock(replace(source, **change), 0, 5) for change in changed]
    changed_blocks += [TextBlock(source, 1, 5), TextBlock(source, 0, 6)]
    assert len({key, *(block.key for block in changed_blocks)}) == 7


def test_plan_blocks__divides_plain_files_and_keeps_compressed_ones_whole(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"x" * 25)
    (tmp_path / "b.txt").write_bytes(b"")
    (tmp_path / "c.gz").write_bytes(gzip.compress(b"x" * 1000))
    sources = find_sources([tmp_path / "a.txt", tmp_path / "b.txt", tmp_path / "c.gz"])
    a, _, c = sources
    assert plan_blocks(sources, 10, {}) == [
        TextBlock(a, 0, 10),
        TextBlock(a, 10, 20),
        TextBlock(a, 20, 25),
        TextBlock(c, 0, c.size),
    ]


def _parquet(path, groups=6):
    table = pa.table({"text": [f"{i:0300d}" for i in range(groups)], "other": [str(i) * 5000 for i in range(groups)]})
    pq.write_table(table, path, row_group_size=1, use_dictionary=False)
    return find_sources(path)


def test_plan_blocks__gathers_row_groups_by_their_size(tmp_path):
    sources = _parquet(tmp_path / "a.parquet")
    spans = [(b.start, b.stop) for b in plan_blocks(sources, 10_000, {})]
    assert spans == [(0, 2), (2, 4), (4, 6)]
    assert [(b.start, b.stop) for b in plan_blocks(sources, 1, {})] == [(i, i + 1) for i in range(6)]
    assert [(b.start, b.stop) for b in plan_blocks(sources, 1 << 30, {})] == [(0, 6)]


def test_plan_blocks__accepts_parquet_without_rows(tmp_path):
    pq.write_table(pa.table({"text": pa.array([], pa.string())}), tmp_path / "a.parquet")
    assert len(plan_blocks(find_sources(tmp_path / "a.parquet"), 10, {})) <= 1


def test_plan_blocks__refuses_a_file_that_is_no_parquet(tmp_path):
    (tmp_path / "a.parquet").write_bytes(b"nothing of the kind")
    with pytest.raises(InputError, match=r"a\.parquet cannot be read as Parquet"):
        plan_blocks(find_sources(tmp_path / "a.parquet"), 10, {})


def test_open_source__reads_on_where_an_answer_failed(memory, no_pauses, monkeypatch):
    content, read, calls = os.urandom(5 << 20), MemoryFile.read, []

    def now_and_then(file, size=-1):
        calls.append(size)
        if len(calls) % 2:
            raise ConnectionResetError
        return read(file, size)

    memory.pipe("/a.txt", content)
    (source,) = find_sources("memory://a.txt", None, {})
    monkeypatch.setattr(MemoryFile, "read", now_and_then)
    with open_source(source, {}) as file:
        assert file.read() == content
    assert len(calls) > 5


def test_open_source__gives_up_what_does_not_answer(memory, no_pauses, monkeypatch):
    memory.pipe("/a.txt", b"some words\n")
    (source,) = find_sources("memory://a.txt", None, {})
    never = threading.Event()
    monkeypatch.setattr(MemoryFile, "read", lambda file, size=-1: never.wait())
    with pytest.raises(StoreError, match=r"a\.txt cannot be read .*no answer"), open_source(source, {}, 0.01) as file:
        file.read()
    never.set()
