import numpy as np
import pytest

from daskw2v.config.params import Params
from daskw2v.store.storage import Store

replicas = pytest.importorskip("benchmarks.replicas", reason="no benchmarks here: run pytest as python -m pytest")


@pytest.mark.parametrize("objective", ["sgns", "cbow_hs"])
@pytest.mark.parametrize("n_replicas", [1, 10])
def test_train__gives_the_bits_of_the_package(objective, n_replicas, tmp_path):
    """Of one replica, and of more than a task adds up, whose rows are merged more and less often."""
    random = np.random.default_rng(1)
    text = tmp_path / "text.txt"
    words = np.minimum(random.zipf(1.3, (400, 40)), 500)
    text.write_text("\n".join(" ".join(f"w{word}" for word in line) for line in words))
    params = Params(
        objective=objective,
        n_replicas=n_replicas,
        frequent_rows=20,
        merges_per_round=4,
        rounds_per_epoch=2,
        min_count=1,
        vector_size=20,
        epochs=2,
        strategy="averaging",
    )
    place = replicas.Place(text, tmp_path / "work", Store(str(tmp_path / "cache")))
    emulated, _ = replicas.train_replicas(replicas.settled_params(params), place)
    trained, _ = replicas.train_by_package(params, place)
    assert emulated.index_to_key == trained.index_to_key
    np.testing.assert_array_equal(emulated.vectors[:], trained.vectors[:])
