"""A GPU, or Numba's simulator of one: what `test_cuda` runs in a process of its own beside the contract of columns."""

import numba
import numpy as np
import pytest
from distributed import Client
from numba import cuda

from daskw2v import Params, Resources, train
from daskw2v.kernels.cuda.warp import kernel, sum_of_lanes, sums_of_lanes, sync_warp
from daskw2v.objectives.registry import OBJECTIVES, find_objective
from daskw2v.sampling.settings import NegativeSampling
from daskw2v.stages import Store

COLUMNS = Params(
    objective="context_matrix",
    strategy="columns",
    vector_size=6,
    negative=2,
    min_count=1,
    epochs=1,
    sample=1.0,
    context_size=12,
    gather_every=8,
    alpha=0.1,
    window=3,
)

PIECES = sorted(name for name, objective in OBJECTIVES.items() if "cuda" in objective.trainers)


@kernel
def sums(alone, eight):
    lane = cuda.threadIdx.x
    values = cuda.local.array(8, numba.float32)
    for k in range(8):
        values[k] = 100 * k + lane
    alone[lane], eight[lane] = sum_of_lanes(values[1]), sums_of_lanes(lane, values)


def test_lanes__have_one_sum_or_eight():
    alone, eight = (cuda.to_device(np.zeros(32, np.float32)) for _ in range(2))
    sums[1, 32](alone, eight)
    lanes = 31 * 32 // 2
    assert alone.copy_to_host().tolist() == [32 * 100 + lanes] * 32
    assert eight.copy_to_host().tolist() == [32 * 100 * (lane // 4) + lanes for lane in range(32)]


@kernel
def lonely(lanes):
    if cuda.threadIdx.x < lanes[0]:
        sync_warp()


@pytest.mark.skipif(not numba.config.ENABLE_CUDASIM, reason="a GPU may wait for ever, or not at all")
def test_simulator__names_lanes_that_wait_in_vain():
    lonely[1, 32](np.full(1, 32))
    with pytest.raises(RuntimeError, match="wait for others"):
        lonely[1, 32](np.full(1, 31))


def train_both(folder, params, sentences=60, **resources):
    """Train sentences of two topics on both devices."""
    rng, text = np.random.default_rng(0), folder / "text.txt"
    topics = rng.integers(0, 2, sentences)
    lines = [" ".join("abcd"[w] + str(topic) for w in rng.integers(0, 4, 8)) for topic in topics]
    text.write_text("".join(f"{line}\n" for line in lines))
    (folder / "markets.csv").write_text("word,market\na0,0\nb0,0\nc0,0\na1,1\nb1,1\nd1,1\n")
    if params.flat().get("market_negative"):
        params = params.replace(markets=str(folder / "markets.csv"))
    with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0") as client:
        return [
            train(
                text,
                work=folder / device,
                params=params,
                client=client,
                resources=Resources(device=device, threads=1, **(resources if device == "cuda" else {})),
            )
            for device in ("cpu", "cuda")
        ]


@pytest.mark.parametrize(("name", "n_replicas"), [*((name, 1) for name in PIECES), ("sgns", 2)])
def test_frozen_words__do_not_move_on_a_gpu_and_others_do(tmp_path, name, n_replicas):
    base, known = tmp_path / "base.txt", ["a0", "b1", "c1"]
    rows = np.random.default_rng(1).normal(scale=0.3, size=(4, 6)).astype(np.float32)
    lines = (f"{word} {' '.join(map(repr, map(float, row)))}\n" for word, row in zip([*known, "x"], rows, strict=True))
    base.write_text("4 6\n" + "".join(lines))
    params = SMALL.replace(
        objective=name, base_vectors=str(base), frozen_words="known", alpha=0.1, n_replicas=n_replicas
    )
    for model in train_both(tmp_path, params, sentences=15, max_in_flight=4):
        np.testing.assert_array_equal(np.stack([model[word] for word in known]), rows[:3])
        first = find_objective(name).initial(params, "input", np.arange(len(model)))
        moved = np.abs(model.vectors[:] - first).max(axis=1) > 1e-4
        assert moved[[model.vocabulary.id(word) for word in model.vocabulary.words if word not in known]].all()


def loss_of(model):
    return Store(model.url).read_manifest()["metrics"]["loss"]


def test_train__gives_the_model_of_the_cpu(tmp_path):
    """The same draws and the same order of moves, up to float32 rounding; and it learns."""
    on_cpu, on_cuda = train_both(tmp_path, COLUMNS)
    np.testing.assert_allclose(on_cuda.vectors[:], on_cpu.vectors[:], rtol=1e-3, atol=1e-4)
    before = (1 + NegativeSampling.of(COLUMNS).negative) * np.log(2)  # where no vector was trained yet
    assert loss_of(on_cuda) < 0.99 * before


SMALL = Params(
    min_count=1, vector_size=6, window=2, sample=1.0, epochs=1, alpha=0.01, min_alpha=0.01, rounds_per_epoch=2
)
ROTATION = Params(
    strategy="rotation",
    n_partitions=2,
    passes_per_epoch=1,
    min_count=1,
    vector_size=6,
    window=1,
    sample=1.0,
    epochs=1,
    alpha=0.01,
)
ROTATIONS = [ROTATION.replace(negative=2), ROTATION.replace(objective="sg_hs")]
MARKETS = [SMALL.replace(objective=name, market_negative=2) for name in ("sgns", "cbow_ns")]
TEXTS = [*(SMALL.replace(objective=name) for name in PIECES), *MARKETS, *ROTATIONS]


@pytest.mark.parametrize(
    "params",
    TEXTS,
    ids=lambda params: f"{params.objective.name}, {params.strategy.name}, {params.flat().get('market_negative')}",
)
def test_train__gives_nearly_the_model_of_the_cpu(tmp_path, params):
    """The same pairs with the same draws; but a step sees a little less of those just before it."""
    on_cpu, on_cuda = train_both(tmp_path, params, sentences=15, max_in_flight=1)
    assert len({model.metadata["metrics"]["pairs"] for model in (on_cpu, on_cuda)}) == 1
    first = find_objective(params.objective.name).initial(params, "input", np.arange(len(on_cpu)))
    moves = [(model.vectors[:] - first).ravel() for model in (on_cpu, on_cuda)]
    assert np.dot(*moves) > 0.9 * np.prod([np.linalg.norm(move) for move in moves])
    assert loss_of(on_cuda) == pytest.approx(loss_of(on_cpu), rel=2e-3)
