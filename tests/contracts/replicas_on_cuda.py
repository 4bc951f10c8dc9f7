"""Runs whose process has several GPUs, or Numba's simulator of one, which trainers share.

`test_cuda` runs this in a process of its own.
"""

import numba
import numpy as np
import pytest
from distributed import Client

from daskw2v import Params, Resources, train
from daskw2v.objectives.registry import find_objective
from daskw2v.training.averaging.replica import Replica
from daskw2v.training.devices.gpu import CudaPartitionTrainer, GpuRows

ROUNDS = Params(
    min_count=1,
    vector_size=6,
    window=2,
    sample=1.0,
    epochs=1,
    alpha=0.01,
    min_alpha=0.01,
    rounds_per_epoch=1,
    merges_per_round=4,
    frequent_rows=3,
)


def write_text(folder, sentences=8):
    rng, text = np.random.default_rng(0), folder / "text.txt"
    topics = rng.integers(0, 2, sentences)
    lines = [" ".join("abcd"[w] + str(topic) for w in rng.integers(0, 4, 8)) for topic in topics]
    text.write_text("".join(f"{line}\n" for line in lines))
    return text


def train_on(device, folder, params, gpus=4, threads=4):
    resources = Resources(device=device, threads=1, **{"max_in_flight": 1} if device == "cuda" else {})
    with Client(
        processes=False, n_workers=1, threads_per_worker=threads, dashboard_address=":0", resources={"GPU": gpus}
    ) as client:
        return train(write_text(folder), work=folder / device, params=params, client=client, resources=resources)


def assert_nearly(found, expected, params):
    """The moves are: a step on a GPU sees a little less of those just before it."""
    assert found.metadata["metrics"]["pairs"] == expected.metadata["metrics"]["pairs"]
    first = find_objective(params.objective.name).initial(params, "input", np.arange(len(expected)))
    moves = [(model.vectors[:] - first).ravel() for model in (found, expected)]
    assert np.dot(*moves) > 0.9 * np.prod([np.linalg.norm(move) for move in moves])


@pytest.mark.parametrize(
    ("n", "changes", "gpus"),
    [(2, {}, 2), (4, {}, 4), (4, {"objective": "cbow_ns"}, 1), (2, {"merge": "mean"}, 2)],
    ids=str,
)
def test_train__merges_replicas_of_one_process_on_its_gpus(tmp_path, n, changes, gpus):
    """Few or many of them, on as many GPUs or fewer."""
    params = ROUNDS.replace(n_replicas=n, **changes)
    on_cpu, on_gpu = (train_on(device, tmp_path, params, gpus) for device in ("cpu", "cuda"))
    assert_nearly(on_gpu, on_cpu, params)


@pytest.mark.skipif(not numba.config.ENABLE_CUDASIM, reason="warps of a GPU train in any order")
def test_replica__that_is_gone_is_made_again_with_the_same_bits(tmp_path, monkeypatch):
    params = ROUNDS.replace(n_replicas=2)
    undisturbed = train_on("cuda", tmp_path, params, 2)
    expected = undisturbed.vectors[:]
    (tmp_path / "again").mkdir()
    read_ahead, rng, lost = Replica.read_ahead, np.random.default_rng(2), []

    def lose(replica, work):
        read_ahead(replica, work)
        lost.append(rng.random() < 0.5)
        if lost[-1]:
            replica.n_trained = None

    monkeypatch.setattr(Replica, "read_ahead", lose)
    again = train_on("cuda", tmp_path / "again", params, 2)
    assert {True, False} == set(lost)
    np.testing.assert_array_equal(again.vectors[:], expected)


@pytest.mark.parametrize("changes", [{}, {"sent_dtype": "bfloat16"}], ids=str)
def test_rotation__leaves_partitions_on_the_gpus_of_one_process(tmp_path, monkeypatch, changes):
    """Those that are not rounded; the others, and what is written, come to the host."""
    params = Params(
        strategy="rotation",
        n_partitions=4,
        n_groups=2,
        passes_per_epoch=1,
        min_count=1,
        vector_size=6,
        window=1,
        sample=1.0,
        epochs=1,
        alpha=0.01,
        negative=2,
        **changes,
    )
    on_gpu, copied = list[bool](), CudaPartitionTrainer._copied

    def copying(trainer, rows):
        on_gpu.append(isinstance(rows, GpuRows))
        return copied(trainer, rows)

    monkeypatch.setattr(CudaPartitionTrainer, "_copied", copying)
    one, other = (train_on(device, tmp_path, params, 2) for device in ("cpu", "cuda"))
    assert_nearly(other, one, params)
    n_steps, of_task = 2, 2 * 2  # partitions of both tables, for each of two groups
    assert len(on_gpu) == n_steps * 2 * of_task
    assert sum(on_gpu) == 4 + 4 * (not changes), "inputs of the second step, and outputs"
