"""A GPU, or Numba's simulator of one: what `test_cuda` runs in a process of its own beside the contract of columns."""

import numba
import numpy as np
from distributed import Client
from numba import cuda

from daskw2v import Params, Resources, Store, train
from daskw2v.cuda.warp import kernel, sum_of_lanes, sums_of_lanes

PARAMS = Params(
    objective="context_matrix", strategy="columns", vector_size=6, negative=2, min_count=1, epochs=1, sample=1.0,
    context_size=12, gather_every=8, alpha=0.1, window=3,
)  # fmt: skip


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


def test_train__gives_the_model_of_the_cpu(tmp_path):
    """The same draws and the same order of moves, up to float32 rounding; and it learns."""
    rng, text = np.random.default_rng(0), tmp_path / "text.txt"
    sentences = [["abcd"[w] + str(topic) for w in rng.integers(0, 4, 8)] for topic in rng.integers(0, 2, 60)]
    text.write_text("".join(" ".join(sentence) + "\n" for sentence in sentences))
    models = {}
    with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0") as client:
        for device in ("cpu", "cuda"):
            resources = Resources(device=device, threads=1)
            models[device] = train(text, work=tmp_path / device, params=PARAMS, resources=resources, client=client)
    np.testing.assert_allclose(models["cuda"].vectors[:], models["cpu"].vectors[:], rtol=1e-3, atol=1e-4)
    loss = Store(models["cuda"].url).read_manifest()["metrics"]["loss"]
    assert loss < 0.99 * (1 + PARAMS.negative) * np.log(2), "what it was before the first step"
