"""Work directories that cannot be, may not be, or are full: told at once, and nothing is lost."""

import os
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from daskw2v import Params, Resources, retrain, train
from daskw2v.cluster.connecting import check_cluster
from daskw2v.errors import ParameterError, StoreError
from daskw2v.models.formats.export import export
from daskw2v.models.queries.vectors import Vectors
from daskw2v.shards.layout import open_codes
from daskw2v.stages import build_corpus, build_matrix, build_vocabulary, train_model
from daskw2v.store.storage import Store
from daskw2v.vocabulary.vocabulary import Vocabulary

PARAMS = Params(min_count=1)
FULL = r"No space is left where .* should be written\. Make room; the same command goes on"


@pytest.mark.parametrize("work", ["", 5, b"work", "a\0b", ["work"]], ids=repr)
def test_work__must_be_a_url_or_path(client, work):
    with pytest.raises(ParameterError, match=r"^work=.* is no URL or path\. Give text that is not empty"):
        train("text.txt", work=work, client=client)


def test_retrain__needs_a_work_directory(client):
    with pytest.raises(ParameterError, match=r"^work=None is no URL or path\."):
        retrain("text.txt", work=None, client=client)


@pytest.mark.parametrize(("name", "value"), [("Params", {"window": 3}), ("Params", Resources()), ("Resources", "cpu")])
def test_params_and_resources__must_be_what_they_are_called(client, tmp_path, name, value):
    with pytest.raises(ParameterError, match=rf"must be a daskw2v\.{name}, not a .*\. Give daskw2v\.{name}\("):
        train("text.txt", work=tmp_path, client=client, **{name.lower(): value})


STAGES = {
    "build_corpus": lambda **given: build_corpus("text.txt", **given),
    "build_vocabulary": lambda **given: build_vocabulary(None, **given),
    "build_matrix": lambda **given: build_matrix(None, None, **given),
    "train_model": lambda **given: train_model(None, None, **given),
}


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize(
    ("name", "value", "remedy"),
    [
        ("store", "s3://a:secret@work", "a daskw2v.stages.Store, not a str. Give daskw2v.stages.Store(url)."),
        ("client", "tcp://host:8786", "a distributed.Client, not a str. Give distributed.Client(address)."),
        ("params", Resources(), "a daskw2v.Params, not a Resources. Give daskw2v.Params(...)."),
        ("resources", {}, "a daskw2v.Resources, not a dict. Give daskw2v.Resources(...)."),
    ],
)
def test_stages__say_which_argument_is_of_another_type(client, tmp_path, stage, name, value, remedy):
    given = {"store": Store(str(tmp_path)), "params": PARAMS, "resources": Resources(), "client": client, name: value}
    with pytest.raises(ParameterError) as caught:
        STAGES[stage](**given)
    assert str(caught.value) == f"{name} must be {remedy}"


@pytest.mark.parametrize(
    ("name", "value"), [("client", "tcp://host:8786"), ("client", ""), ("params", {}), ("resources", ())]
)
def test_train__says_which_argument_is_of_another_type(client, tmp_path, name, value):
    with pytest.raises(ParameterError, match=rf"^{name} must be a .*, not a {type(value).__name__}\. Give "):
        train("text.txt", **{"work": tmp_path, "client": client, name: value})


@pytest.mark.parametrize(
    ("work", "reason"),
    [
        ("{folder}/file", "File exists"),
        ("{folder}/file/below", "Not a directory"),
        ("{folder}/link", "File exists"),
        ("{folder}/" + "x" * 300, "File name too long"),
        ("/dev/null", "File exists"),
    ],
)
def test_work__that_can_be_no_folder_is_told_with_the_reason(client, tmp_path, work, reason):
    (tmp_path / "file").write_text("kept")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    url = work.format(folder=tmp_path)
    with pytest.raises(StoreError, match=rf"{url}\S* cannot be (read or )?written .*{reason}.*Give "):
        check_cluster(client, Store(url))
    assert (tmp_path / "file").read_text() == "kept"


@contextmanager
def mounted(options):
    """Mount a file system in memory; skip where that is not allowed.

    It is mounted outside pytest's folders. A killed run leaves it mounted, and pytest fails where it cannot remove
    the folders of an older run.
    """
    folder = Path(tempfile.mkdtemp(prefix="daskw2v-disk-"))
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True).returncode:
        folder.rmdir()
        pytest.skip("only root may mount a small disk")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)
        folder.rmdir()


def remount(folder, options):
    subprocess.run(["mount", "-o", f"remount,{options}", str(folder)], check=True)


def test_work__that_may_only_be_read_is_told_as_such(client, tmp_path):
    told = r"/work\S* cannot be (read or )?written .*Read-only file system.*Give "
    with mounted("size=1m,ro") as disk, pytest.raises(StoreError, match=told):
        check_cluster(client, Store(str(disk / "work")))


def test_work__of_another_user_is_told_as_such(client, open_folder, another_user):
    open_folder.chmod(0o555)  # for whoever runs the tests as himself
    told = r"/work\S* cannot be (read or )?written .*Permission denied.*Give "
    with another_user(), pytest.raises(StoreError, match=told):
        check_cluster(client, Store(str(open_folder / "work")))


def content_of(corpus, vocabulary):
    """Return all that a training reads: the ids of all tokens, words and counts."""
    codes = [open_codes(vocabulary.store, shard)[:] for shard in corpus.shards]
    ids = [vocabulary.read_map(shard.path)[codes[i]] for i, shard in enumerate(corpus.shards)]
    loaded = vocabulary.load()
    return np.concatenate(ids).tolist(), loaded.words, loaded.counts.tolist()


def test_work__on_a_full_disk_goes_on_with_the_same_bits_when_there_is_room(client, tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("".join(f"w{i % 997} w{i * 7 % 89} w{i * 3 % 1053}\n" for i in range(20_000)))
    resources = Resources(block_size="100 KB")

    def build(folder):
        store = Store(str(folder))
        corpus = build_corpus(text, store, PARAMS, resources, client)
        return content_of(corpus, build_vocabulary(corpus, store, PARAMS, resources, client))

    undisturbed = build(tmp_path / "work")
    needed = sum(path.stat().st_blocks for path in (tmp_path / "work").rglob("*")) // 2  # KiB
    with mounted("size=64k") as disk:
        for share in (0.2, 0.6):
            remount(disk, f"size={int(share * needed)}k")
            with pytest.raises(StoreError, match=FULL):
                build(disk / "work")
        assert list((disk / "work" / "shards").glob("*/*/manifest.json")), "blocks that were finished stay"
        remount(disk, "size=30m")
        assert build(disk / "work") == undisturbed


def test_manifest__is_the_old_one_or_the_new_on_a_full_disk(tmp_path):
    with mounted("size=64k") as disk:
        store = Store(str(disk / "work"))
        store.write_manifest({"a": 1})
        for _ in range(2):
            with pytest.raises(StoreError, match=FULL):
                store.write_manifest({"a": "x" * 100_000})
        assert {name: value for name, value in store.read_manifest().items() if name == "a"} == {"a": 1}
        assert store.children() == ["manifest.json"]


@pytest.mark.parametrize("name", ["v.txt", "v.bin.gz", "v.parquet", "v.safetensors"])
def test_export__to_a_full_disk_leaves_no_part(tmp_path, name):
    matrix = np.random.default_rng(1).standard_normal((2000, 50), np.float32)
    vectors = Vectors(Vocabulary.from_words([f"w{i}" for i in range(2000)], [1] * 2000), matrix)
    with mounted("size=128k") as disk:
        with pytest.raises(StoreError, match=rf"No space is left where {disk}/out/{name} should be written"):
            export(vectors, disk / "out" / name)
        assert list((disk / "out").iterdir()) == []


@pytest.mark.parametrize("written", ["runs", "runs/", "./runs", "runs//", "here/../runs", "~/runs", "{folder}/runs/"])
def test_work__is_one_place_however_it_is_written(tmp_path, monkeypatch, written):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    Store(str(tmp_path / "runs")).write_manifest({"a": 1})
    monkeypatch.chdir(tmp_path)
    store = Store(written.format(folder=tmp_path))
    monkeypatch.chdir(tmp_path / "here")  # a worker stands elsewhere
    assert store.read_manifest()["a"] == 1
    assert (store / "below").url == str(tmp_path / "runs" / "below")


def test_home__is_meant_in_lists_of_sets_too(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Resources(eval_similarity=["~/ws353.tsv", Path("~") / "b"]).eval_similarity == (
        str(tmp_path / "ws353.tsv"),
        str(tmp_path / "b"),
    )


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ["sp ace", "ünï日", "new\nline", "st*r", "br[a]cket", "wh?t", "#h%41", "a;b&c"])
def test_work__may_have_any_name(client, tmp_path, name):
    (tmp_path / "text.txt").write_text("one two\n" * 9)
    store = Store(str(tmp_path / name))
    corpus = build_corpus(tmp_path / "text.txt", store, PARAMS, Resources(), client)
    assert build_vocabulary(corpus, store, PARAMS, Resources(), client).load().words == ["one", "two"]
