"""Followers load the served version completely, and readers never get a damaged one."""

import logging
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import daskw2v
from daskw2v.errors import DamageError, ParameterError, StoreError
from daskw2v.models.follower import Follower
from daskw2v.models.index.vectors import IndexedVectors, build_index
from daskw2v.models.queries.vectors import Vectors
from daskw2v.models.stored.store import finish_tables, write_vocabulary
from daskw2v.models.stored.tables import create_model, write_table_rows
from daskw2v.models.versions import resolving
from daskw2v.models.versions.resolving import resolve
from daskw2v.models.versions.versions import Versions, publish
from daskw2v.store.storage import Store
from daskw2v.vocabulary.vocabulary import Vocabulary

NEVER = 3600.0  # seconds between two looks of tests that look themselves


@pytest.fixture(params=["local", "memory"])
def work(request, tmp_path):
    return Store(f"memory://{tmp_path.name}/work" if request.param == "memory" else str(tmp_path))


@pytest.fixture
def served(work):
    """Versions 1 and 2; 2 is served."""
    return [add(work, number) for number in (1, 2)]


def add(work, number):
    """Publish a version whose parts all hold its number; return its name."""
    name = f"v{number:04}-r"
    store = work / "models" / name
    create_model(store, {"input": (8, 4)}, row_block=2)
    write_table_rows(store, "input", 0, np.full((8, 4), number, np.float32))
    write_vocabulary(store, Vocabulary.from_words([f"{number}-{i}" for i in range(8)], range(8, 0, -1)))
    publish(work / "models", name, {"params": {"seed": number}})
    return name


def is_whole(vectors):
    """Return whether rows, words, manifest and URL are of one version."""
    (number, *_), name = vectors.vectors[0].astype(int), vectors.url.rsplit("/", 1)[-1]
    words = [f"{number}-{i}" for i in range(8)]
    return (
        (vectors[words] == number).all()
        and vectors.metadata["params"]["seed"] == number
        and name == f"v{number:04}-r"
        and {word for word, _ in vectors.most_similar(words[0], topn=7)} == {*words[1:]}
    )


def wait_for(is_done):
    while not is_done():
        time.sleep(0.01)


def test_follower__is_public():
    assert daskw2v.Follower is Follower


def test_follower__follows_by_itself(work, served):
    with Follower(work.url, interval=0.01) as follower:
        assert follower.version == served[1]
        Versions(work).rollback()
        wait_for(lambda: follower.version == served[0])
        add(work, 3)
        wait_for(lambda: follower.version == "v0003-r")
        assert is_whole(follower.vectors)


FORKED = """
import os, sys, time
from daskw2v import Follower, Versions

work, wanted = sys.argv[1:]
follower, closed = Follower(work, interval=0.01), Follower(work, interval=0.01)
closed.close()
child = os.fork()
if child == 0:
    while follower.version != wanted:
        time.sleep(0.01)
    time.sleep(0.1)
    os._exit(closed.version == wanted)
Versions.open(work).rollback()
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.parametrize("work", ["local"], indirect=True)
def test_follower__follows_after_a_fork(work, served):
    assert subprocess.run([sys.executable, "-c", FORKED, work.url, served[0]], timeout=60).returncode == 0


@pytest.mark.slow
def test_follower__serves_complete_versions_only(work, served):
    versions, done, faults, met, names = Versions(work), threading.Event(), [], set(), [*served, add(work, 3)]

    def read():
        while not done.is_set():
            try:
                vectors = follower.vectors
                met.add(vectors.url)
                if not is_whole(vectors):
                    faults.append(vectors.url)
            except Exception as error:
                faults.append(error)

    with Follower(work.url, interval=0.001) as follower:
        readers = [threading.Thread(target=read) for _ in range(2)]
        for reader in readers:
            reader.start()
        for turn in range(12):
            versions.publish(names[turn % 3])
            if turn % 2:
                versions.rollback()
        last = versions.find("LATEST").name
        wait_for(lambda: follower.version == last)
        done.set()
        for reader in readers:
            reader.join()
    assert faults == []
    assert len(met) > 1


def test_follower__serves_the_current_version_while_another_is_opened(work, served):
    opening, go_on = threading.Event(), threading.Event()

    class Slow(Vectors):
        """Vectors whose second version takes time to open."""

        @classmethod
        def open(cls, url, *args, **options):
            if url != work.url:
                opening.set()
                go_on.wait()
            return super().open(url, *args, **options)

    with Follower(work.url, interval=NEVER, opened_as=Slow) as follower:
        Versions(work).rollback()
        looker = threading.Thread(target=follower.look)
        looker.start()
        opening.wait()
        assert follower.version == served[1]
        assert is_whole(follower.vectors)
        go_on.set()
        looker.join()
        assert follower.version == served[0]


def test_look__logs_a_version_that_cannot_be_opened_once_and_tries_again(work, served, caplog):
    caplog.set_level(logging.WARNING, "daskw2v")
    with Follower(work.url, interval=NEVER) as follower:
        third = work / "models" / add(work, 3)
        chunk = (third / "input/c/0").read_bytes("0")
        (third / "input/c/0").write_bytes("0", bytes(len(chunk)))
        assert not follower.look()
        assert not follower.look()
        assert isinstance(follower.error, DamageError)
        assert (follower.version, is_whole(follower.vectors)) == (served[1], True)
        assert [record.getMessage().startswith(f"{served[1]} is served on: ") for record in caplog.records] == [True]
        (third / "input/c/0").write_bytes("0", chunk)
        assert follower.look()
        assert (follower.version, follower.error) == ("v0003-r", None)


def test_look__rows_that_are_not_finite_are_not_served(work, served):
    with Follower(work.url, interval=NEVER, in_memory=True) as follower:
        store = work / "models" / add(work, 3)
        finish_tables(store, [write_table_rows(store, "input", 0, np.full((8, 4), np.inf, np.float32))])
        assert not follower.look()
        assert "not finite" in str(follower.error)


def test_look__keeps_serving_a_deleted_version(work, served):
    with Follower(work.url, interval=NEVER, in_memory=True) as follower:
        (work / "models" / served[1]).remove()
        assert not follower.look()
        assert follower.error is None  # the version is the one that is served
        for name in ("state", "LATEST"):
            (work / "models" / name).remove()
        assert not follower.look()
        assert "has no version 'LATEST' any more" in str(follower.error)
        assert is_whole(follower.vectors)


def test_follower__a_name_stays_and_a_tag_moves(work, served):
    versions = Versions(work)
    versions.tag(served[0], "stable")
    with (
        Follower(work.url, version=served[0], interval=NEVER) as pinned,
        Follower(work.url, version="stable", interval=NEVER) as tagged,
    ):
        assert pinned.version == tagged.version == served[0]
        versions.tag(served[1], "stable")
        assert (pinned.look(), tagged.look()) == (False, True)
        assert (pinned.version, tagged.version) == (*served,)
        versions.untag("stable")
        assert not tagged.look()
        assert "has no version 'stable' any more" in str(tagged.error)
        assert tagged.version == served[1]


def test_follower__leaves_rows_in_the_store(work, served):
    with Follower(work.url, interval=NEVER, in_memory=False) as follower:
        Versions(work).rollback()
        assert follower.look()
        assert not isinstance(follower.vectors.vectors, np.ndarray)
        assert follower.vectors["1-0"].tolist() == [1.0] * 4


def test_follower__of_indexed_vectors_takes_versions_once_they_are_indexed(work, served):
    pytest.importorskip("usearch", reason="usearch comes with daskw2v[ann]")
    build_index(work.url)
    with Follower(work.url, interval=NEVER, opened_as=IndexedVectors) as follower:
        add(work, 3)
        assert not follower.look()
        assert "has no index" in str(follower.error)
        build_index(work.url)
        assert follower.look()
        assert isinstance(follower.vectors, IndexedVectors)
        assert is_whole(follower.vectors)


def test_close__stops_polling(work, served):
    follower = Follower(work.url, interval=0.01)
    follower.close()
    Versions(work).rollback()
    assert not follower.look()
    assert follower.version == served[1]
    assert is_whole(follower.vectors)


def test_follower__refuses_a_folder_without_a_model(work, served):
    with pytest.raises(ParameterError, match="interval=0 is not above 0"):
        Follower(work.url, interval=0)
    with pytest.raises(StoreError, match="There is no model at"):
        Follower(f"{work.url}/models/{served[0]}")
    with pytest.raises(StoreError, match="has no version 'none'"):
        Follower(work.url, version="none")


@pytest.mark.parametrize("moment", ["manifest", "rows"])
def test_open__resolves_again_if_the_version_is_deleted_meanwhile(work, served, monkeypatch, moment):
    """A new version is served and the old one deleted, after the old name, or the old manifest, was read."""
    read, calls = resolving.read_finished, []

    def read_finished(store):
        calls.append(store)
        if len(calls) != 2:  # the first looks for a version at the URL itself
            return read(store)
        manifest = read(store)
        Versions(work).publish(served[0])
        (work / "models" / served[1]).remove()
        return manifest if moment == "rows" else None

    monkeypatch.setattr(resolving, "read_finished", read_finished)
    vectors = Vectors.open(work.url)
    assert is_whole(vectors)
    assert vectors.url.endswith(served[0])


def test_resolve__looks_again_once_only(work, served):
    (work / "models" / served[1]).remove()
    with pytest.raises(StoreError, match=f"names {served[1]!r}, which is not a finished model"):
        resolve(work.url)
