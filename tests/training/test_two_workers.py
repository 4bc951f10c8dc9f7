"""Two worker processes: the same bits as one worker, whatever the strategy. In one file, so that they start once."""

import numpy as np
import pytest

from daskw2v import Params, Resources, train
from daskw2v.errors import ClusterError
from daskw2v.models.stored.tables import open_table
from daskw2v.stages import Store
from daskw2v.training.columns import parts

COMMON = Params(vector_size=12, min_count=1, epochs=2, sample=1e-2)
COLUMNS = COMMON.replace(objective="context_matrix", strategy="columns", context_size=100, gather_every=13)
RUNS = {
    "averaging": COMMON.replace(n_replicas=3, rounds_per_epoch=4, frequent_rows=20),
    "rotation": COMMON.replace(strategy="rotation", n_partitions=8, passes_per_epoch=1),
    "columns": COLUMNS.replace(optimizer="adam", alpha=0.02),
    "columns by SGD": COLUMNS.replace(optimizer="sgd", alpha=0.1),
}


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    rng, path = np.random.default_rng(0), tmp_path_factory.mktemp("text") / "text.txt"
    topics = rng.integers(0, 6, 800)
    words = [[f"topic{t}_{w}" for w in np.minimum(rng.zipf(1.3, 12), 15)] for t in topics]
    path.write_text("".join(" ".join(sentence) + "\n" for sentence in words))
    return path


@pytest.mark.sampled(1)
@pytest.mark.parametrize("run", RUNS)
def test_train__gives_the_same_bits_on_two_workers(client, two_processes, text, tmp_path, monkeypatch, run):
    monkeypatch.setattr(parts, "UNIT_WORDS", 4)  # ninety words have parts for both
    chosen = {"params": RUNS[run], "resources": Resources(threads=1, block_size="32 KiB")}
    one, two = (
        train(text, work=tmp_path / name, client=workers, **chosen)
        for name, workers in (("one", client), ("two", two_processes))
    )
    assert one.vocabulary.words == two.vocabulary.words
    np.testing.assert_array_equal(one.vocabulary.counts, two.vocabulary.counts)
    for table in ("input", "output"):
        np.testing.assert_array_equal(*(open_table(Store(vectors.url), table)[:] for vectors in (one, two)))
    if RUNS[run].strategy.name == "columns":  # others share out no more than is needed
        rates = [worker["words_per_second"] for worker in two.metadata["metrics"]["workers"]]
        assert len(rates) == 2
        assert min(rates) > 0


def test_train__refuses_a_work_url_that_workers_do_not_see(text, two_processes):
    with pytest.raises(ClusterError, match="do not see the work URL memory://"):
        train(text, work="memory://alone", params=COMMON, client=two_processes)
