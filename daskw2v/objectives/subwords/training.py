"""Training of the network of characters: initial weights, forward and backward passes in PyTorch, and Adam's step.

Results have the same bits on processors of one kind: PyTorch has one thread, and batches have fixed sizes and a fixed
order. Other devices sum in another order, so their results are only near those of a processor.
"""

import platform
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from daskw2v.errors import MissingExtraError
from daskw2v.extras import needed
from daskw2v.kernels.rng import Purpose, stream, uniform
from daskw2v.objectives.context_matrix.updates import BETA1, BETA2, EPSILON, step_size
from daskw2v.objectives.subwords import network
from daskw2v.objectives.subwords.network import LENGTH, MAX_CHARACTERS, Weights, filter_name, weight_shapes
from daskw2v.types import Float32Array, Int32Array

WIDTHS = (2, 3, 4, 5)  # characters below a filter
FILTERS = 100  # of each width
CHARACTER_SIZE = 32  # of a character's vector
_SPREAD = 2.2  # as measured: the values of words then start with a standard deviation of 8 / sqrt(12) / D


class AdamMoments(NamedTuple):
    """Adam's two moments of each weight: means of the gradient and of its square."""

    first: Weights
    second: Weights


def initial_weights(vector_size: int, n_characters: int, seed: int) -> Weights:
    """Return a network's weights before training, float32: a pure function, so that any worker can compute them.

    Values of filters have variance 1 before the activation. Words' vectors have the spread of
    `objectives.base.initial_rows`.

    Parameters
    ----------
    vector_size
        Dimensions of the words' vectors.
    n_characters
        Number of characters, `len(alphabet)`.
    seed
        Seed of the draws.
    """
    key, n_drawn, weights = stream(seed, Purpose.NETWORK), 0, {}
    for name, shape in weight_shapes(WIDTHS, n_characters, CHARACTER_SIZE, FILTERS, vector_size, LENGTH).items():
        n = int(np.prod(shape))
        weights[name] = uniform(key, np.arange(n_drawn, n_drawn + n)).reshape(shape) * np.float32(2) - np.float32(1)
        n_drawn += n
    weights["characters"][0] = 0  # unknown characters have no influence, unless training has some
    for width in WIDTHS:
        weights[filter_name(width)] *= np.float32(3 / np.sqrt(width * CHARACTER_SIZE))
    weights["output"] *= np.float32(_SPREAD / (vector_size * np.sqrt(len(WIDTHS) * FILTERS)))
    weights["bias"][:] = 0
    return weights


def check_torch(device: str) -> None:
    """Raise an error if this process cannot train a network on a device.

    Parameters
    ----------
    device
        PyTorch's name of it, such as "cpu", as in all functions below.

    Raises
    ------
    MissingExtraError
        If PyTorch is not installed, or cannot use such a device.
    """
    torch = needed("torch", "torch")
    if not getattr(torch, device).is_available():
        raise MissingExtraError(
            f"PyTorch {torch.__version__} (built for CUDA: {torch.version.cuda}) finds no {device} device on "
            f"{platform.node()}, and the network is to be trained on one.",
            "Install a build of PyTorch for the CUDA version of that machine's driver, as "
            "https://pytorch.org/get-started tells, or train with device='cpu'.",
        )


def weight_bytes(vector_size: int) -> int:
    """Return the bytes of a network's weights, of the most characters."""
    shapes = weight_shapes(WIDTHS, MAX_CHARACTERS, CHARACTER_SIZE, FILTERS, vector_size, LENGTH)
    return np.dtype(np.float32).itemsize * sum(int(np.prod(shape)) for shape in shapes.values())


def training_bytes(vector_size: int, n_words: int) -> int:
    """Return the approximate bytes of memory that `gradients` takes for a batch of n_words of the largest length."""
    n_weights = weight_bytes(vector_size) // np.dtype(np.float32).itemsize
    values = n_words * LENGTH * len(WIDTHS) * FILTERS
    # Of the passes through the filters, or behind them, where the gradient of the output's part has its full size
    return int(np.dtype(np.float32).itemsize * max(4 * values + 2 * n_weights, 2.2 * values + 4 * n_weights))


def forward(weights: Weights, characters: Int32Array, device: str = "cpu") -> Float32Array:
    """Return words' vectors, shape (n, D) float32, like `network.compute_vectors`, in a fraction of the time.

    Parameters
    ----------
    weights
        The network, float32.
    characters
        Words as `Alphabet.encode` returns them, shape (n, length) int32.
    device
        The device of PyTorch.

    Raises
    ------
    MissingExtraError
        If PyTorch is not installed.
    """
    torch = import_torch()
    rows = np.empty((len(characters), len(weights["bias"])), np.float32)
    with torch.no_grad():
        tensors = {name: torch.tensor(values, device=device) for name, values in weights.items()}
        for words, batch in network.cut_batches(characters):
            rows[words] = compute_vector_tensors(torch, tensors, batch).cpu().numpy()
    return rows


def gradients(weights: Weights, characters: Int32Array, row_gradients: Float32Array, device: str = "cpu") -> Weights:
    """Return the gradient of the network's weights from the gradient of words' vectors.

    Parameters
    ----------
    weights
        The network, float32.
    characters
        Words as `Alphabet.encode` returns them, shape (n, length) int32.
    row_gradients
        The gradient of each word's vector, shape (n, D) float32.
    device
        The device of PyTorch.

    Returns
    -------
    gradient
        The gradient of sum(rows * row_gradients) by each weight; gradients of batches add up.

    Raises
    ------
    MissingExtraError
        If PyTorch is not installed.
    """
    torch = import_torch()
    tensors = {name: torch.tensor(values, device=device, requires_grad=True) for name, values in weights.items()}
    for tensor in tensors.values():
        tensor.grad = torch.zeros_like(tensor)
    for words, batch in network.cut_batches(characters):
        batch_gradients = torch.from_numpy(row_gradients[words]).to(device)
        compute_vector_tensors(torch, tensors, batch).backward(batch_gradients)  # adds to the gradient
    return {name: tensor.grad.cpu().numpy() for name, tensor in tensors.items()}


def zero_moments(weights: Weights) -> AdamMoments:
    """Return the moments of weights before the first step: zeros of the weights' shapes."""
    return AdamMoments(*({name: np.zeros_like(values) for name, values in weights.items()} for _ in range(2)))


def adam_step(
    weights: Weights, moments: AdamMoments, gradient: Weights, alpha: float, t: int
) -> tuple[Weights, AdamMoments]:
    """Return weights and moments after a step of Adam along the gradient, uphill; the arguments are not changed.

    The step is Adam's of Kingma and Ba (2015, algorithm 1, in the order at the end of section 2), except that epsilon
    squared is added below the root, as for rows.

    Parameters
    ----------
    weights, moments, gradient
        Arrays of the same names and shapes.
    alpha
        Learning rate, about the largest change of a weight.
    t
        Number of the step, from 1 on.
    """
    step = np.float32(step_size.py_func(alpha, t - 1))
    new, first, second = {}, {}, {}
    for name, g in gradient.items():
        first[name] = BETA1 * moments.first[name] + (1 - BETA1) * g
        second[name] = BETA2 * moments.second[name] + (1 - BETA2) * g * g
        new[name] = weights[name] + step * first[name] / np.sqrt(second[name] + np.float32(EPSILON**2))
    return new, AdamMoments(first, second)


def compute_vector_tensors(torch: ModuleType, weights: dict[str, Any], batch: Int32Array) -> Any:
    """Return the vectors of a batch of words as a tensor, shape (n, D), from tensors of `network.Weights` by name.

    The computation is `network.compute_vectors`; sums of a table's rows are bags of PyTorch's embeddings.
    """
    characters = weights["characters"]
    vectors = torch.nn.functional.pad(characters, (0, 0, 1, 0))  # padding's is zero
    values = []
    for width in network.filter_widths(weights):
        table = vectors @ weights[filter_name(width)].reshape(width, characters.shape[1], -1)
        rows = torch.from_numpy(network.filter_windows(batch, width, len(vectors))).flatten(0, 1).to(characters.device)
        sums = torch.nn.functional.embedding_bag(rows, table.flatten(0, 1), mode="sum")
        values.append(torch.tanh(sums).reshape(len(batch), -1, sums.shape[1]))
    flat = torch.cat(values, dim=2).flatten(1)
    return flat @ weights["output"][: flat.shape[1]] + weights["bias"]


def import_torch() -> ModuleType:
    """Return the module of PyTorch, set to one thread and products of float32, without TF32 or bfloat16.

    Raises a MissingExtraError if it is not installed.

    Several threads would sum in varying order, and each core has a task already. The settings are not restored, as
    other tasks of this process may be computing.
    """
    torch = needed("torch", "torch")
    torch.set_num_threads(1)
    torch.set_float32_matmul_precision("highest")
    return torch
