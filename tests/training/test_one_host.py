"""Workers of one host share memory instead of sending rows: the same bits, whoever dies."""

import os
import signal

import numpy as np
import pytest
from distributed import Client, LocalCluster

from daskw2v import Params, Resources, train
from daskw2v.cluster.shared_memory import shared_bytes
from daskw2v.training.strategies import STRATEGIES

RESOURCES = Resources(threads=1, block_size="32 KiB", checkpoint_seconds=1000)
COMMON = Params(vector_size=100, min_count=1, epochs=2, sample=1e-2)  # rows that are worth sharing
COLUMNS = COMMON.replace(objective="context_matrix", strategy="columns", context_size=32, gather_every=8)
PARAMS = {
    "averaging": COMMON.replace(n_replicas=2, rounds_per_epoch=4, frequent_rows=20),
    "rotation": COMMON.replace(strategy="rotation", n_partitions=4, n_groups=2, passes_per_epoch=2),
    "columns": COLUMNS,
    "columns with moments": COLUMNS.replace(optimizer="adam"),
}


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    rng, path = np.random.default_rng(0), tmp_path_factory.mktemp("text") / "text.txt"
    words = np.concatenate([np.arange(600), rng.zipf(1.2, 3000) % 600])
    path.write_text("\n".join(" ".join(f"w{w}" for w in line) for line in words.reshape(-1, 12)))
    return path


@pytest.fixture(scope="module")
def pair():
    """A client of two workers, where the session's cluster is this process, in which nothing is sent."""
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        yield client


def test_strategies__are_all_here():
    assert {params.strategy.name for params in PARAMS.values()} == set(STRATEGIES)


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="this system has no memory without a name")
@pytest.mark.slow
@pytest.mark.parametrize("name", PARAMS)
def test_strategies__share_memory_and_give_the_same_bits(client, pair, text, tmp_path, name):
    """Where partitions rotate, a worker dies too."""
    given, killed = [sum(pair.run(shared_bytes).values())], []

    def listen(progress):
        if progress.loss is not None:
            given.append(sum(pair.run(shared_bytes).values()))
        if name == "rotation" and len(given) == 5 and not killed:
            killed.append(pair.run(os.getpid).popitem()[1])
            os.kill(killed[-1], signal.SIGKILL)

    options = {"params": PARAMS[name], "resources": RESOURCES}
    alone = train(text, work=tmp_path / "alone", client=client, **options)
    both = train(text, work=tmp_path / "both", client=pair, listener=listen, **options)
    np.testing.assert_array_equal(alone.vectors[:], both.vectors[:])
    assert max(given) > given[0]
    assert len(killed) == (name == "rotation")
