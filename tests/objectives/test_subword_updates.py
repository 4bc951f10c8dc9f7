import re

import numpy as np
import pytest

from daskw2v.errors import MissingExtraError
from daskw2v.objectives.subwords.network import LENGTH, MAX_CHARACTERS, Alphabet, compute_vectors
from daskw2v.objectives.subwords.training import (
    adam_step,
    check_torch,
    forward,
    gradients,
    initial_weights,
    training_bytes,
    zero_moments,
)

torch = pytest.importorskip("torch", reason="PyTorch comes with daskw2v[torch]")

RNG = np.random.default_rng(2)
WORDS = ["", "a", "banana", "🎈", "x" * 40, *("".join(RNG.choice([*"abcde"], n)) for n in RNG.integers(1, 25, 100))]
ALPHABET = Alphabet.from_words(WORDS, 5)
CHARACTERS = ALPHABET.encode(WORDS)
MOVE = RNG.standard_normal((len(WORDS), 12), np.float32)
MANY, TIMES = np.tile(CHARACTERS, (11, 1)), 11  # more words than a batch of the network


@pytest.fixture(autouse=True)
def _settings_as_before():
    threads, precision = torch.get_num_threads(), torch.get_float32_matmul_precision()
    yield
    torch.set_num_threads(threads)
    torch.set_float32_matmul_precision(precision)


@pytest.fixture
def weights():
    return initial_weights(12, len(ALPHABET), 1)


def test_forward__equals_its_reference(weights):
    truth = compute_vectors({name: values.astype(np.float64) for name, values in weights.items()}, CHARACTERS)
    for rows in (forward(weights, CHARACTERS), compute_vectors(weights, CHARACTERS)):
        assert rows.dtype == np.float32
        np.testing.assert_allclose(rows, truth, rtol=1e-5, atol=1e-6)


def test_forward__accepts_no_words_and_read_only_weights(weights):
    for values in weights.values():
        values.flags.writeable = False
    assert forward(weights, CHARACTERS[:0]).shape == (0, 12)
    assert not any(values.any() for values in gradients(weights, CHARACTERS[:0], MOVE[:0]).values())
    assert forward(weights, CHARACTERS).shape == MOVE.shape


def test_gradients__equal_differences_of_the_reference(weights):
    weights = {name: values.astype(np.float64) for name, values in weights.items()}
    result = gradients({name: values.astype(np.float32) for name, values in weights.items()}, CHARACTERS, MOVE)
    rng = np.random.default_rng(4)
    for name, values in weights.items():
        assert result[name].dtype == np.float32
        assert result[name].shape == values.shape
        for index in zip(*(rng.integers(0, n, 6) for n in values.shape), strict=True):
            sums, original = [], values[index]
            for step in (1e-6, -1e-6):
                values[index] = original + step
                sums.append((compute_vectors(weights, CHARACTERS) * MOVE).sum())
            values[index] = original
            assert result[name][index] == pytest.approx((sums[0] - sums[1]) / 2e-6, rel=1e-3, abs=1e-3)


def test_gradients__are_reproducible_on_one_thread(weights):
    torch.set_num_threads(2)
    first, again = (gradients(weights, MANY, np.tile(MOVE, (TIMES, 1))) for _ in range(2))
    assert torch.get_num_threads() == 1
    for name, values in first.items():
        assert values.tobytes() == again[name].tobytes()


def test_forward__multiplies_in_float32(weights):
    """A caller of this process may have allowed TF32, which has 11 bits."""
    torch.set_float32_matmul_precision("medium")
    forward(weights, CHARACTERS)
    assert torch.get_float32_matmul_precision() == "highest"
    assert not torch.backends.cuda.matmul.allow_tf32


@pytest.mark.parametrize("size", [100, 300, 1000])
def test_training_bytes__are_about_the_memory_of_pytorch(size):
    n_words, alphabet = 256, Alphabet("".join(map(chr, range(33, 33 + MAX_CHARACTERS))))
    weights, characters = initial_weights(size, len(alphabet), 1), alphabet.encode(["x" * LENGTH] * n_words)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profiled:
        gradients(weights, characters, np.ones((n_words, size), np.float32))
    memory = [event.nbytes() for event in profiled.profiler.kineto_results.events() if event.name() == "[memory]"]
    assert 1 < training_bytes(size, n_words) / max(np.cumsum(memory)) < 1.2


def test_check_torch__names_a_build_without_cuda(monkeypatch):
    check_torch("cpu")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    match = (
        rf"PyTorch {re.escape(torch.__version__)} \(built for CUDA: .*finds no cuda device.*Install a build of PyTorch"
    )
    with pytest.raises(MissingExtraError, match=match):
        check_torch("cuda")


def test_gradients__add_up_over_words(weights):
    gradient, repeated = gradients(weights, CHARACTERS, MOVE), gradients(weights, MANY, np.tile(MOVE, (TIMES, 1)))
    parts = [gradients(weights, CHARACTERS[rows], MOVE[rows]) for rows in (slice(40), slice(40, None))]
    for name, values in gradient.items():
        np.testing.assert_allclose(parts[0][name] + parts[1][name], values, rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(repeated[name] / TIMES, values, rtol=1e-3, atol=1e-4)


def test_adam_step__equals_the_step_of_pytorch_uphill(weights):
    original = {name: values.copy() for name, values in weights.items()}
    leaves = {name: torch.tensor(values, requires_grad=True) for name, values in weights.items()}
    optimizer = torch.optim.Adam(leaves.values(), lr=0.01, maximize=True)
    stepped, moments, rng = weights, zero_moments(weights), np.random.default_rng(3)
    for t in range(1, 6):
        gradient = {name: rng.standard_normal(values.shape, np.float32) for name, values in weights.items()}
        for name, leaf in leaves.items():
            leaf.grad = torch.tensor(gradient[name])
        optimizer.step()
        stepped, moments = adam_step(stepped, moments, gradient, 0.01, t)
    for name, leaf in leaves.items():
        assert stepped[name].dtype == np.float32
        np.testing.assert_allclose(stepped[name], leaf.detach().numpy(), rtol=1e-4, atol=1e-5)
        assert np.array_equal(weights[name], original[name])


def test_adam_step__keeps_weights_without_gradient(weights):
    gradient = {name: np.zeros_like(values) for name, values in weights.items()}
    after, _ = adam_step(weights, zero_moments(weights), gradient, 0.01, 1)
    for name, values in weights.items():
        assert np.array_equal(after[name], values)


def test_training__teaches_rows(weights):
    """Rows reach the targets that they are moved to, and so does a new word of the same characters."""
    target, moments = np.where([["an" in word] for word in WORDS], 1, -1).astype(np.float32), zero_moments(weights)
    for t in range(1, 61):
        move = np.repeat(target - forward(weights, CHARACTERS).mean(axis=1, keepdims=True), 12, axis=1)
        weights, moments = adam_step(weights, moments, gradients(weights, CHARACTERS, move), 0.003, t)
    assert np.abs(forward(weights, CHARACTERS).mean(axis=1) - target[:, 0]).mean() < 0.3
    assert forward(weights, ALPHABET.encode(["bananas"])).mean() > 0.3
