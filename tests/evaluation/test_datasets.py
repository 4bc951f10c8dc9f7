import dataclasses
import hashlib
import io
import json
import zipfile
from pathlib import Path
from typing import get_args

import fsspec
import pytest

from daskw2v.errors import InputError, MissingExtraError, ParameterError
from daskw2v.evaluation import datasets
from daskw2v.evaluation.datasets import DATASETS, Kind, unpack


@pytest.fixture
def publish(tmp_path, monkeypatch):
    """Return a function that writes content to a file and makes it the download of a set."""

    def publish(name, content, **changes):
        path = tmp_path / f"published-{name}"
        path.write_bytes(content)
        checksum = f"sha256:{hashlib.sha256(content).hexdigest()}"
        changed = dataclasses.replace(DATASETS[name], **{"url": f"file://{path}", "checksum": checksum, **changes})
        monkeypatch.setitem(DATASETS, name, changed)
        return path

    return publish


def fetch(name, folder):
    """Download a set unless the folder has it, and return its path."""
    return datasets.datasets(name, folder=folder)[name].path


def make_archive(**files):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as f:
        for name, text in files.items():
            f.writestr(name, text)
    return content.getvalue()


def test_datasets__have_a_page_terms_and_a_pinned_url():
    for name, dataset in DATASETS.items():
        assert dataset.name == name
        assert all((dataset.page, dataset.licence, dataset.citation, dataset.note)), name
        assert (dataset.url is None) == (dataset.checksum is None), name
        if dataset.url is not None:
            algorithm, _, digest = dataset.checksum.partition(":")
            assert len(bytes.fromhex(digest)) == hashlib.new(algorithm).digest_size, name
            assert "/master/" not in dataset.url, name
    assert {dataset.kind for dataset in DATASETS.values()} == set(get_args(Kind))


def test_datasets__lists_all_and_downloads_some(publish, tmp_path):
    assert datasets.datasets() == DATASETS
    assert {dataset.path for dataset in DATASETS.values()} == {None}
    publish("ws353", b"a\tb\t1\n")
    with pytest.raises(ParameterError, match=r"no set 'nope'\. Give one of: ws353, "):
        datasets.datasets("ws353", "nope", folder=tmp_path / "sets")
    with pytest.raises(ParameterError, match=r"no set \['ws353'\]"):
        datasets.datasets(["ws353"], folder=tmp_path / "sets")
    assert not (tmp_path / "sets").exists()
    (result,) = datasets.datasets("ws353", folder=tmp_path / "sets").items()
    assert result == ("ws353", dataclasses.replace(DATASETS["ws353"], path=str(tmp_path / "sets" / "ws353.tsv")))
    assert Path(result[1].path).read_text() == "a\tb\t1\n"


@pytest.mark.parametrize("folder", ["{tmp_path}/sets", "memory://sets-{tmp_path.name}"])
def test_fetch__downloads_once(publish, tmp_path, folder):
    folder, source = folder.format(tmp_path=tmp_path), publish("ws353", b"a\tb\t1\r\n")
    path = fetch("ws353", folder)
    assert path == f"{folder}/ws353.tsv"
    source.unlink()
    assert fetch("ws353", folder) == path
    with fsspec.open(path, "rb") as f, fsspec.open(f"{folder}/ws353.json") as origin:
        assert f.read() == b"a\tb\t1\r\n"
        assert json.load(origin)["licence"] == "CC BY 4.0"


def test_fetch__downloads_again_if_the_url_changed(publish, tmp_path):
    publish("men", b"a b 1\n")
    fetch("men", tmp_path)
    source = publish("men", b"a b 2\n").rename(tmp_path / "elsewhere")
    publish("men", b"", url=f"file://{source}", checksum=None)
    assert Path(fetch("men", tmp_path)).read_text() == "a b 2\n"


def test_fetch__downloads_again_if_the_file_was_deleted(publish, tmp_path):
    publish("men", b"a b 1\n")
    Path(fetch("men", tmp_path)).unlink()
    assert Path(fetch("men", tmp_path)).read_bytes() == b"a b 1\n"


def test_fetch__makes_folders_of_files(publish, tmp_path):
    files = {"BATS_3.0/1_I/I01 [noun].txt": "a\tb\n", "BATS_3.0/2_D/D01.txt": "c\td/e\n", "BATS_3.0/meta.json": "{}"}
    publish("bats", make_archive(**files, **{"__MACOSX/BATS_3.0/1_I/._I01.txt": "x"}))
    folder = tmp_path / "sets"
    assert fetch("bats", folder) == str(folder / "bats")
    result = {p.relative_to(folder).as_posix(): p.read_text() for p in folder.rglob("*.txt")}
    assert result == {"bats/1_I/I01 [noun].txt": "a\tb\n", "bats/2_D/D01.txt": "c\td/e\n"}


@pytest.mark.parametrize(
    ("layout", "content", "files"),
    [
        ("word classes", b",category,word\n0,big stone,\xc3\xa9\n1,b,\n2,b,c\n", {"": "é\tbig stone\nc\tb\n"}),
        (
            "analogy table",
            b",type,word1,word2,word3,target\n0,X,a,b,c,d\n1,Y,b,a,d,c\n2,X,e,f,g,h\n",
            {"": ": X\na b c d\ne f g h\n: Y\nb a d c\n"},
        ),
        ("labels", b"1 a  fine\tfilm \n0 \n0\n\n1 \xc3\xa9\n", {"": "1\ta  fine\tfilm\n1\té\n"}),
        ("labels cp1252", b"1 um\x85 \xe9\n", {"": "1\tum… é\n"}),
        (
            "topics",
            b",category,outliers,words\n0,Big_cats,\"['car', '']\",\"['lion', 'Sri_Lanka']\"\n",
            {"Big_cats.txt": "lion\nSri_Lanka\n\ncar\n"},
        ),
        ("ready", b"\xff\r\n", {"": None}),
    ],
)
def test_unpack__converts_to_the_layouts_that_evaluations_read(layout, content, files):
    result = unpack(layout, content)
    if layout == "ready":
        assert result == {"": content}
    else:
        assert {name: text.decode() for name, text in result.items()} == files


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("ap", b"a,b\n1,2\n"),
        ("ap", b"\xff\n"),
        ("outliers_888", b",category,outliers,words\n0,a,[b,c\n"),
        ("outliers_888", b",category,outliers,words\n0,a,(,[]\n"),
        ("bats", b"not an archive"),
        ("bats", make_archive(**{"BATS/../../up.txt": "x"})),
    ],
)
def test_fetch__names_a_file_of_another_layout(publish, tmp_path, name, content):
    publish(name, content)
    with pytest.raises(InputError, match=rf"is not in the layout '{DATASETS[name].layout}'.*get {name} from http"):
        fetch(name, tmp_path / "sets")
    with pytest.raises(ParameterError, match=r"no set \['ws353'\]"):
        datasets.datasets(["ws353"], folder=tmp_path / "sets")
    assert not (tmp_path / "sets").exists()


@pytest.mark.parametrize("algorithm", ["sha1", "sha256"])
def test_fetch__refuses_another_content(publish, tmp_path, algorithm):
    publish("men", b"abc", checksum=f"{algorithm}:{hashlib.new(algorithm, b'abd').hexdigest()}")
    with pytest.raises(
        InputError, match=rf"returned 3 bytes with {algorithm} {hashlib.new(algorithm, b'abc').hexdigest()}"
    ):
        fetch("men", tmp_path / "sets")
    with pytest.raises(ParameterError, match=r"no set \['ws353'\]"):
        datasets.datasets(["ws353"], folder=tmp_path / "sets")
    assert not (tmp_path / "sets").exists()


def test_fetch__names_a_download_that_fails(publish, tmp_path):
    publish("men", b"").unlink()
    with pytest.raises(InputError, match=r"cannot be downloaded: FileNotFoundError.*Check the network"):
        fetch("men", tmp_path)


def test_fetch__names_a_missing_package(publish, tmp_path, monkeypatch):
    def open_(*_):
        raise ImportError("HTTPFileSystem requires aiohttp")

    publish("men", b"")
    monkeypatch.setattr(datasets, "filesystem", open_)
    with pytest.raises(MissingExtraError, match=r"HTTPFileSystem requires aiohttp.*pip install aiohttp"):
        fetch("men", tmp_path)


def test_fetch__lists_the_known_sets(tmp_path):
    with pytest.raises(ParameterError, match=r"There is no set 'wordsim'. Give one of: ws353, .*outliers_888"):
        fetch("wordsim", tmp_path)


def test_fetch__names_the_page_of_a_set_without_a_download(tmp_path):
    with pytest.raises(ParameterError, match=r"No direct download of esslli2008_1a .*http.*1a.tsv, .*categorization"):
        fetch("esslli2008_1a", tmp_path)
    (tmp_path / "esslli2008_1a.tsv").write_text("owl\tbird\n")
    assert fetch("esslli2008_1a", tmp_path) == str(tmp_path / "esslli2008_1a.tsv")
