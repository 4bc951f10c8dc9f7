"""Phrases of a run that is cut short, killed, damaged or raced: those of a run that nothing disturbed."""

import os
import shutil
import signal
import time
from pathlib import Path

import numpy as np
import pytest
from distributed import Client, LocalCluster

from daskw2v import Params, Phrases, Resources, train
from daskw2v.errors import DamageError
from daskw2v.phrases import bigrams, build, tasks
from daskw2v.stages import Store, build_corpus, build_phrases
from daskw2v.store.arrays import read_array
from daskw2v.training.preparation.repair import repair

PARAMS = Params(
    phrases=2, phrase_min_count=3, phrase_threshold=0.5, vector_size=4, min_count=1, epochs=1, sample=1.0, window=2
)
RESOURCES = Resources(threads=1, block_size="4 KiB")


class CutShort(Exception):
    """As if the client had been killed."""


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    rng = np.random.default_rng(5)
    path = tmp_path_factory.mktemp("text") / "text.txt"
    often = ["new york city", "no", "ice cream", *(f"w{i}" for i in range(20))]
    path.write_text("".join(" ".join(often[w] for w in rng.zipf(1.5, 9) % 23) + "\n" for _ in range(200)))
    return path


@pytest.fixture(autouse=True)
def several_buckets(monkeypatch):
    monkeypatch.setattr(bigrams, "BUCKET_WORDS", 1000)


def joined(text, work, client, listener=lambda _: None):
    store = Store(str(work))
    corpus = build_corpus(text, store, PARAMS, RESOURCES, client)
    return build_phrases(corpus, store, PARAMS, RESOURCES, client, listener)


@pytest.fixture(scope="module")
def undisturbed(text, client, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bigrams, "BUCKET_WORDS", 1000)
        work = tmp_path_factory.mktemp("work")
        corpus = joined(text, work, client)
    assert all(corpus_found.n_phrases for corpus_found in corpus.passes)
    return corpus, Store(str(work))


def content_of(corpus, store):
    """Everything of a corpus but the names of its shards: they hold those of attempts."""
    read = [
        {
            name: read_array((store / shard.path).open_group(), name).tolist()
            for name in ("codes", "starts", "words", "offsets", "counts", "places", "edges")
        }
        for shard in corpus.shards
    ]
    return read, Phrases.of(corpus, store), corpus.identity


def stop_at(message):
    def listener(progress):
        if progress.stage == "phrases" and progress.message.startswith(message):
            raise CutShort

    return listener


@pytest.mark.slow
@pytest.mark.parametrize(
    "moment",
    [
        "count: 2 of",
        *(pytest.param(moment, marks=pytest.mark.slow) for moment in ("merge: 1 of", "choose: 1 of", "join: 2 of")),
    ],
)
def test_build_phrases__go_on_where_they_were_cut_short(text, client, tmp_path, undisturbed, monkeypatch, moment):
    with pytest.raises(CutShort):
        joined(text, tmp_path, client, stop_at(moment))
    (pass_folder,) = (tmp_path / "phrases").iterdir()
    finished = {path.parent for path in pass_folder.glob("*/*/manifest.json")}
    run_once, redone = tasks.run_once, []

    def watched(task_folder, find, make):
        return run_once(task_folder, find, lambda attempt: redone.append(Path(task_folder.url)) or make(attempt))

    monkeypatch.setattr(tasks, "run_once", watched)
    corpus_found = joined(text, tmp_path, client)
    assert content_of(corpus_found, Store(str(tmp_path))) == content_of(*undisturbed)
    assert finished
    assert redone
    assert not finished & set(redone)
    assert sorted(path.name for path in pass_folder.iterdir()) == ["choose", "join"]


def test_build_phrases__are_built_once(text, client, tmp_path, monkeypatch):
    first = joined(text, tmp_path, client)
    monkeypatch.setattr(build, "run_tasks", None)
    assert joined(text, tmp_path, client) == first


@pytest.mark.slow
def test_build_phrases__tasks_run_twice_do_no_harm(text, client, tmp_path, undisturbed, monkeypatch):
    """As Dask may: both at once, so that neither finds what the other has left."""
    monkeypatch.setattr(tasks, "find_finished", lambda folder: None)
    for name in ("count_shard", "merge_bucket", "choose_phrases", "join_shard"):
        run = getattr(tasks, name)
        monkeypatch.setattr(tasks, name, lambda *args, run=run: (run(*args), run(*args))[1])
    corpus_found = joined(text, tmp_path, client)
    assert content_of(corpus_found, Store(str(tmp_path))) == content_of(*undisturbed)
    for pass_folder in (tmp_path / "phrases").iterdir():
        for task_folder in pass_folder.glob("*/*"):
            assert len(list(task_folder.iterdir())) == 2, "an attempt and a manifest"


@pytest.mark.slow
def test_build_phrases__on_workers_that_are_killed_are_the_same(text, tmp_path, undisturbed):
    killed = []
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):

        def kill(progress):
            step = progress.message.split(":")[0]
            if progress.stage == "phrases" and progress.done and step in ("count", "join") and step not in killed:
                killed.append(step)
                os.kill(client.run(os.getpid).popitem()[1], signal.SIGKILL)

        corpus_found = joined(text, tmp_path, client, kill)
    assert killed == ["count", "join"]
    assert content_of(corpus_found, Store(str(tmp_path))) == content_of(*undisturbed)


def spoil(path, how):
    content = bytearray(path.read_bytes())
    if how == "lost":
        path.unlink()
    elif how == "cut short":
        path.write_bytes(content[: len(content) // 2])
    else:
        content[len(content) // 2] ^= 0x10
        path.write_bytes(content)


HOW = ("changed", "cut short", "lost")


def repaired(text, work, client):
    """Build and read phrases as `train` does: what is damaged is removed, and made again."""
    store = Store(str(work))
    for removed in range(9):
        try:
            return content_of(joined(text, work, client), store), removed
        except DamageError as damage:
            if repair(store, damage) is None:
                raise
    raise AssertionError


@pytest.mark.slow
@pytest.mark.parametrize("state", [pytest.param("merge: 2 of", marks=pytest.mark.slow), "whole"])
def test_build_phrases__makes_again_what_is_damaged(text, client, tmp_path, undisturbed, state):
    """One file at a time, each in another way by turns."""
    before, expected = tmp_path / "before", content_of(*undisturbed)
    if state == "whole":
        joined(text, before, client)
    else:
        with pytest.raises(CutShort):
            joined(text, before, client, stop_at(state))
        while any(client.run(lambda dask_worker: dask_worker.state.executing_count).values()):
            time.sleep(0.05)  # what is cancelled writes to its end
    names = sorted(path.relative_to(before) for path in (before / "phrases").rglob("*") if path.is_file())
    removed = 0
    for number, name in enumerate(names[:: max(1, len(names) // 5)]):
        work = tmp_path / str(number)
        shutil.copytree(before, work)
        spoil(work / name, HOW[number % len(HOW)])
        content, more = repaired(text, work, client)
        assert content == expected, name
        removed += more
        shutil.rmtree(work)
    assert removed


@pytest.mark.slow
@pytest.mark.parametrize("how", ["changed", "lost"])
def test_train__makes_the_list_of_an_earlier_pass_again(text, client, tmp_path, how):
    options = {"work": tmp_path, "params": PARAMS, "resources": RESOURCES, "client": client}
    first = train(text, **options)
    phrases = Phrases.open(tmp_path)
    shutil.rmtree(tmp_path / "models")
    for group in (tmp_path / "phrases").glob("*/choose/0/*/0"):
        spoil(group / ("words/c/0" if how == "changed" else "zarr.json"), how)
    again = train(text, **options)
    np.testing.assert_array_equal(again.vectors, first.vectors)
    assert Phrases.open(tmp_path) == phrases
