"""Workers of one host share memory instead of sending rows: the same bits, whoever dies."""

import os
import signal

import numpy as np
import pytest
from distributed import Client, LocalCluster

from daskw2v import Params, Resources, train
from daskw2v.shared import given_bytes
from daskw2v.strategies import STRATEGIES

RESOURCES = Resources(threads=1, block_size="32 KiB", checkpoint_seconds=1000)
COMMON = Params(vector_size=100, min_count=1, epochs=2, sample=1e-2)  # rows that are worth sharing
PARAMS = {
    "averaging": COMMON.replace(n_replicas=2, rounds_per_epoch=4, warmup=0),
    "rotation": COMMON.replace(strategy="rotation", n_partitions=4, n_groups=2, passes_per_epoch=2),
    "columns": COMMON.replace(
        objective="context_matrix", strategy="columns", optimizer="adam", context_size=32, gather_every=8
    ),
}


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    rng, path = np.random.default_rng(0), tmp_path_factory.mktemp("text") / "text.txt"
    words = np.concatenate([np.arange(600), rng.zipf(1.2, 3000) % 600])
    path.write_text("\n".join(" ".join(f"w{w}" for w in line) for line in words.reshape(-1, 12)))
    return path


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="this system has no memory without a name")
def test_strategies__share_memory_and_give_the_same_bits(client, text, tmp_path):
    """The session's cluster is this process, where nothing is sent; of the other one a worker dies."""
    assert PARAMS.keys() == STRATEGIES.keys()
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as other,
    ):
        for name, params in PARAMS.items():
            given, killed = [], []

            def listen(progress, given=given, killed=killed, dies=name == "rotation"):
                if progress.loss is not None:
                    given.append(sum(other.run(given_bytes).values()))
                if dies and len(given) == 4 and not killed:
                    killed.append(other.run(os.getpid).popitem()[1])
                    os.kill(killed[-1], signal.SIGKILL)

            before = sum(other.run(given_bytes).values())
            options = {"params": params, "resources": RESOURCES}
            alone = train(text, work=tmp_path / name, client=client, **options)
            both = train(text, work=tmp_path / f"{name}-shared", client=other, listener=listen, **options)
            np.testing.assert_array_equal(alone.vectors[:], both.vectors[:], err_msg=name)
            assert max(given) > before, name
            assert len(killed) == (name == "rotation")
