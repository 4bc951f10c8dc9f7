"""The network of characters on a GPU, or beside a simulator of one: what `test_cuda` runs in a process of its own."""

import numpy as np
import pytest

from daskw2v.models.stored.store import read_subwords
from daskw2v.objectives.subwords.network import Alphabet, compute_vectors
from daskw2v.objectives.subwords.training import check_torch, forward, gradients, initial_weights
from daskw2v.sampling.settings import NegativeSampling
from daskw2v.stages import Store
from daskw2v.training.devices import CUDA
from tests.contracts.on_cuda import COLUMNS, loss_of, train_both

DEVICE = CUDA.torch_device()
WORDS = ["", "a", "banana", "bananas", "x" * 40, *(f"w{number:x}" for number in range(30))]
NETWORK = COLUMNS.replace(objective="subwords", alpha=0.01)


@pytest.fixture
def network():
    """A network, and its words' characters."""
    alphabet = Alphabet.from_words(WORDS)
    return initial_weights(12, len(alphabet), 1), alphabet.encode(WORDS)


def test_network__computes_the_rows_of_its_reference(network):
    weights, characters = network
    check_torch(DEVICE)
    truth = compute_vectors({name: values.astype(np.float64) for name, values in weights.items()}, characters)
    np.testing.assert_allclose(forward(weights, characters, DEVICE), truth, rtol=1e-5, atol=1e-6)


def test_network__has_the_gradients_of_the_processor(network):
    weights, characters = network
    move = np.random.default_rng(0).standard_normal((len(WORDS), 12), np.float32)
    on_cpu, there = (gradients(weights, characters, move, device) for device in ("cpu", DEVICE))
    for name, values in on_cpu.items():
        np.testing.assert_allclose(there[name], values, rtol=1e-3, atol=1e-4 * np.abs(values).max())


def test_train__gives_nearly_the_network_of_the_cpu(tmp_path):
    """The same draws and the same order of steps, up to float32 rounding; and it learns."""
    on_cpu, on_cuda = train_both(tmp_path, NETWORK)
    np.testing.assert_allclose(on_cuda.vectors[:], on_cpu.vectors[:], rtol=1e-3, atol=1e-4)
    networks = [read_subwords(Store(model.url)).weights for model in (on_cpu, on_cuda)]
    for name, values in networks[0].items():
        np.testing.assert_allclose(networks[1][name], values, rtol=0, atol=1e-3 * np.abs(values).max())
    assert loss_of(on_cuda) == pytest.approx(loss_of(on_cpu), rel=1e-4)
    before = (1 + NegativeSampling.of(NETWORK).negative) * np.log(2)  # where no vector was trained yet
    assert loss_of(on_cuda) < 0.99 * before
