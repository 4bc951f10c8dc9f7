"""A folder is all files below it: the same ones in the same order, each of one format, wherever it lies."""

import os

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from daskw2v.corpus.sources import find_sources, plan_blocks
from daskw2v.errors import InputError, ParameterError

DAYS = ("day=2024-01-01", "day=2024-01-02")


@pytest.fixture
def memory():
    fs = fsspec.filesystem("memory")
    yield fs
    fs.store.clear()


def put(folder, *names, content=b"one two\n"):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def names(folder, inputs=None, **options):
    """Return what is found, relative to the folder."""
    sources = find_sources(folder if inputs is None else inputs, **options)
    return [os.path.relpath(source.url, folder) for source in sources]


@pytest.fixture
def hive(tmp_path):
    """A table in partitions, with what Spark and Dask write beside their data."""
    for day in DAYS:
        (tmp_path / "hive" / day).mkdir(parents=True)
        for part in (1, 0):
            pq.write_table(pa.table({"text": ["one two"]}), tmp_path / "hive" / day / f"part-{part}.parquet")
    put(tmp_path / "hive", "_SUCCESS", "_metadata", f"{DAYS[0]}/.part-0.parquet.crc", "_temporary/0/part-9.parquet")
    return tmp_path / "hive"


PARTS = [f"{day}/part-{part}.parquet" for day in DAYS for part in (0, 1)]


@pytest.mark.parametrize("name", ["", "/", "/*", "/day=*", "/../hive", "/day=*/*.parquet"])
def test_hive__is_read_by_its_folder_or_a_pattern_of_folders(hive, name):
    assert names(hive, f"{hive}{name}") == PARTS
    assert {source.format for source in find_sources(f"{hive}{name}")} == {"parquet"}
    assert len(plan_blocks(find_sources(f"{hive}{name}"), 1 << 20)) == len(PARTS)


def test_hive__has_the_sources_of_the_pattern_of_its_files(hive):
    assert find_sources(hive) == find_sources(f"{hive}/day=*/*.parquet") == find_sources(hive)


@pytest.mark.parametrize("name", ["memory://p/hive", "memory://p/hive/", "memory://p/hive/*", "memory://p/*"])
def test_hive__in_an_object_store(memory, name):
    for part in (*PARTS, "_SUCCESS", f"{DAYS[0]}/.crc", "_temporary/part-9.parquet"):
        memory.pipe(f"/p/hive/{part}", b"content")
    assert [source.url for source in find_sources(name)] == [f"memory://p/hive/{part}" for part in PARTS]


@pytest.mark.parametrize("name", ["hive", "hive/", "hive/*", "h*"])
def test_hive__in_s3_is_read_without_its_markers(s3, name):
    fs = fsspec.filesystem("s3", **s3)
    for part in (*PARTS, "_SUCCESS", f"{DAYS[0]}/", "work/zarr.json"):
        fs.pipe_file(f"bucket/hive/{part}", b"" if part.endswith("/") else b"content")
    sources = find_sources(f"s3://bucket/{name}", storage_options=s3, work="s3://bucket/hive/work")
    assert [source.url for source in sources] == [f"s3://bucket/hive/{part}" for part in PARTS]


def test_store__may_be_read_from_its_root(memory):
    memory.pipe("/a/b.txt", b"one\n")
    (source,) = find_sources("memory://")
    assert fsspec.open(source.url).open().read() == b"one\n"


def test_pattern__takes_files_and_the_folders_beside_them_each_file_once(tmp_path):
    put(tmp_path, "b.txt", "a/c.txt", "a/d/e.txt")
    for pattern in ("*", "**"):
        assert names(tmp_path, f"{tmp_path}/{pattern}") == ["a/c.txt", "a/d/e.txt", "b.txt"]


@pytest.mark.parametrize("pattern", ["*", "**"])
def test_pattern__that_matches_all_files_itself_takes_all_of_them_whatever_their_names(tmp_path, pattern):
    put(tmp_path, "_a.txt", "b.txt", ".c.txt", "d.jsonl")
    (tmp_path / "empty").mkdir()
    if pattern == "**":
        put(tmp_path, "e/f.txt", "e/_g.jsonl")
    expected = [".c.txt", "_a.txt", "b.txt", "d.jsonl", *(["e/_g.jsonl", "e/f.txt"] if pattern == "**" else [])]
    assert names(tmp_path, f"{tmp_path}/{pattern}") == expected


def test_folder__that_is_named_may_have_a_hidden_name(tmp_path):
    put(tmp_path, "_data/a.txt", "_data/.b.txt")
    assert names(tmp_path, tmp_path / "_data") == ["_data/a.txt"]
    assert names(tmp_path, f"{tmp_path}/_data/*") == ["_data/.b.txt", "_data/a.txt"]


def test_folder__of_several_formats_is_refused_and_both_are_named(tmp_path):
    put(tmp_path, "a.txt", "b/c.jsonl", "b/d.jsonl.gz")
    message = r"files of several formats, such as text \(.*a\.txt\) and jsonl \(.*c\.jsonl\)\. Give format.*\*\.txt"
    for name in ("", "/*"):
        with pytest.raises(InputError, match=message):
            find_sources(f"{tmp_path}{name}")


def test_folder__gives_the_files_of_the_format_given(tmp_path):
    put(tmp_path, "a.txt", "b/c.jsonl", "b/d.jsonl.gz", "e.log")
    assert names(tmp_path, format="jsonl") == ["b/c.jsonl", "b/d.jsonl.gz"]
    assert names(tmp_path, format="text") == ["a.txt", "e.log"]
    with pytest.raises(InputError, match=r"No file in .* is parquet by its name; .*a\.txt is not\. Give a pattern"):
        find_sources(tmp_path, "parquet")
    (only,) = find_sources(f"{tmp_path}/*.log", "jsonl")
    assert only.format == "jsonl"


def test_folder__without_files_is_refused(tmp_path):
    put(tmp_path, "_SUCCESS", ".hidden/a.txt")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"is a folder without files to read\. Names that begin with \. or _"):
        find_sources(tmp_path)
    with pytest.raises(InputError, match=r"/empty\* matches no file"):
        find_sources(f"{tmp_path}/empty*")


def test_folder__follows_links_to_each_folder_once(tmp_path):
    put(tmp_path, "text/a/b.txt", "elsewhere/c.txt")
    (tmp_path / "text" / "latest").symlink_to(tmp_path / "text" / "a")
    (tmp_path / "text" / "round").symlink_to(tmp_path / "text")
    (tmp_path / "text" / "more").symlink_to(tmp_path / "elsewhere")
    assert names(tmp_path / "text") == ["a/b.txt", "more/c.txt"]
    assert names(tmp_path / "text", f"{tmp_path}/text/*") == ["a/b.txt", "more/c.txt"]


def test_folder__that_may_not_be_seen_is_an_error(tmp_path, monkeypatch):
    put(tmp_path, "a.txt", "b/c.txt")
    scandir = os.scandir

    def refuse(path):
        if str(path).endswith("/b"):
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(InputError, match=r"cannot be searched \(PermissionError.*/b"):
        find_sources(tmp_path)


@pytest.mark.parametrize("name", ["", "/*", "/**"])
def test_work_directory__in_the_folder_is_passed_over(tmp_path, monkeypatch, name):
    put(tmp_path, "a.txt", "work2.txt", "work/models/v1/zarr.json", "work/corpora/x.json", "work/models/v1/c/0")
    monkeypatch.chdir(tmp_path)
    for work in (str(tmp_path / "work"), "./work", "work/"):
        assert names(tmp_path, f".{name}", work=work) == ["a.txt", "work2.txt"]


def test_work_directory__may_hold_the_text_and_is_not_text_itself(tmp_path):
    put(tmp_path, "work/text/a.txt", "work/models/zarr.json")
    assert names(tmp_path, tmp_path / "work" / "text", work=str(tmp_path / "work")) == ["work/text/a.txt"]
    with pytest.raises(InputError, match=r"work is the work directory\. Give the text"):
        find_sources(tmp_path / "work", work=str(tmp_path / "work"))


def test_work_directory__in_a_store_is_passed_over(memory):
    memory.pipe("/p/a.txt", b"one\n")
    memory.pipe("/p/runs/zarr.json", b"{}")
    (source,) = find_sources("memory://p", work="memory://p/runs")
    assert source.url == "memory://p/a.txt"


def test_folder__with_another_work_directory_is_refused(tmp_path):
    put(tmp_path, "a.jsonl", "old/models/v1/zarr.json")
    with pytest.raises(InputError, match=r"holds Zarr arrays, as a work directory does: .*old/models/v1/zarr\.json"):
        find_sources(tmp_path, work=str(tmp_path / "work"))


@pytest.mark.parametrize(
    ("name", "own"), [("a.csv", "csv"), ("a.tsv", "tsv"), ("A.CSV.GZ", "csv"), ("a.csv.zst", "csv")]
)
def test_table__is_read_as_such_unless_format_says_that_it_is_text(tmp_path, name, own):
    put(tmp_path, name)
    for inputs in (tmp_path / name, tmp_path, f"{tmp_path}/*"):
        assert [source.format for source in find_sources(inputs)] == [own]
    for format in ("text", "jsonl"):
        assert find_sources(tmp_path / name, format)[0].format == format
        assert find_sources(f"{tmp_path}/*", format)[0].format == format


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("a.xlsx", "bytes of a table"),
        ("a.avro.gz", "bytes of a table"),
        ("a.html", "tags"),
        ("a.xml.bz2", "tags"),
        ("a.pdf", "bytes of a document"),
        ("a.jpg", "bytes of a picture"),
        ("a.npy", "bytes of arrays or objects"),
    ],
)
def test_file__of_another_kind_is_refused_by_its_name(tmp_path, name, what):
    put(tmp_path, name)
    with pytest.raises(InputError, match=rf"{name} is not text by its name: {what} would become words.*format='text'"):
        find_sources(tmp_path / name)
    assert find_sources(tmp_path / name, "text")[0].format == "text"


@pytest.mark.parametrize("name", ["a", "a.txt", "a.md", "a.log", "a.tok.en", "part-00000", "a.en", "a.2024"])
def test_file__of_any_other_name_is_text(tmp_path, name):
    put(tmp_path, name)
    assert find_sources(tmp_path / name)[0].format == "text"


def test_format__that_does_not_exist_is_refused_before_anything_is_looked_for():
    with pytest.raises(ParameterError, match="format='xml'"):
        find_sources("nowhere", "xml")
