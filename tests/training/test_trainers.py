"""Where some workers declare what a device needs, they train and nobody else; where none does, all do."""

from dataclasses import replace

import numpy as np
import pytest
from distributed import Client, Scheduler, SpecCluster, Worker

from daskw2v import Params, Resources, train
from daskw2v.errors import ClusterError
from daskw2v.training import rounds
from daskw2v.training.devices import DEVICES
from daskw2v.training.loop.strategy import WorkerShares
from daskw2v.training.rotation import work as rotation_work
from daskw2v.training.strategies import STRATEGIES

COMMON = Params(vector_size=12, min_count=1, epochs=1, sample=1e-2)
PARAMS = {
    "averaging": COMMON.replace(n_replicas=3, rounds_per_epoch=2),
    "rotation": COMMON.replace(strategy="rotation", n_partitions=4, passes_per_epoch=1),
    "columns": COMMON.replace(objective="context_matrix", strategy="columns", context_size=20),
}
RESOURCES = Resources(threads=1, block_size="32 KiB")


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "text.txt"
    words = np.random.default_rng(0).zipf(1.2, 6000) % 600
    path.write_text("\n".join(" ".join(f"w{w}" for w in line) for line in words.reshape(-1, 12)))
    return path


@pytest.fixture(scope="module")
def mixed():
    """A client of two workers with a GPU, as they say, and of two that are faster."""
    options = [{"nthreads": 1, "resources": {"GPU": 1}}] * 2 + [{"nthreads": 3}] * 2
    workers = {n: {"cls": Worker, "options": {"protocol": "inproc", **chosen}} for n, chosen in enumerate(options)}
    scheduler = {"cls": Scheduler, "options": {"protocol": "inproc", "dashboard_address": ":0"}}
    with SpecCluster(workers, scheduler) as cluster, Client(cluster) as client:
        yield client


ASKED = []


def note():
    ASKED.append(1)


@pytest.fixture
def checked(monkeypatch):
    """The processor, as a device that needs a GPU; gives an entry for each time that a worker is asked for it."""
    monkeypatch.setitem(DEVICES, "cpu", replace(DEVICES["cpu"], resource="GPU", check=note))
    ASKED.clear()
    return ASKED


@pytest.fixture
def seen(monkeypatch):
    """The addresses of workers that trained."""
    found = set()
    monkeypatch.setattr(rounds, "WorkerShares", lambda: Watched(found))
    return found


class Watched(WorkerShares):
    def __init__(self, found):
        self.found = found

    def add(self, totals):
        self.found |= {total.worker for total in totals}
        super().add(totals)


def refuse():
    raise ClusterError("device='cpu' finds none.", "Start others.")


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("strategy", "fits"), [*((name, True) for name in STRATEGIES), ("rotation", False)])
def test_trainers__declare_their_gpu(mixed, client, text, tmp_path, checked, seen, monkeypatch, strategy, fits):
    if not fits:
        monkeypatch.setattr(rotation_work, "fits_model", lambda *_: False)
    chosen = {"params": PARAMS[strategy], "resources": RESOURCES}
    expected = train(text, work=tmp_path / "all", client=client, **chosen)
    assert len(checked) == 1, "a cluster without GPUs declared: all workers"
    seen.clear(), checked.clear()
    vectors = train(text, work=tmp_path / "mixed", client=mixed, **chosen)
    assert len(checked) == 2
    having = {a for a, worker in mixed.scheduler_info(n_workers=-1)["workers"].items() if worker["resources"]}
    assert len(having) == 2
    assert seen
    assert seen <= having
    np.testing.assert_array_equal(vectors.vectors[:], expected.vectors[:])


def test_trainers__that_lack_what_they_declare_are_named(mixed, text, tmp_path, monkeypatch):
    monkeypatch.setitem(DEVICES, "cpu", replace(DEVICES["cpu"], resource="GPU", check=refuse))
    with pytest.raises(ClusterError, match="finds none"):
        train(text, work=tmp_path, client=mixed)
