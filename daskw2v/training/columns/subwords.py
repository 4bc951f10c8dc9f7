"""Input rows computed by the subword network: the tasks of strategy `columns` for objective `subwords`.

A step goes over minibatches of words. The network computes the rows of a minibatch. These are trained on the step's
columns like other rows, with the output rows fixed. Their change is the gradient that is propagated back through the
network, which takes a step of Adam (Li et al. 2019, section 5.8). After all minibatches, the network computes all input
rows, and the output rows are trained against them.

Gradients are computed for blocks of words and summed in the order of the blocks, so the sum has the same bits on any
number of workers (data parallelism, section 3.3).
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple, TypeAlias

import numpy as np

from daskw2v.cluster.shared_memory import share
from daskw2v.cluster.workers import this_worker
from daskw2v.errors import DamageError
from daskw2v.models.stored.store import create_part, read_subwords, write_subwords
from daskw2v.objectives.base import INPUT, OUTPUT
from daskw2v.objectives.subwords import training
from daskw2v.objectives.subwords.network import Alphabet, Subwords, Weights
from daskw2v.objectives.subwords.training import AdamMoments
from daskw2v.sampling.context_matrix import read_contexts
from daskw2v.sampling.run import Run
from daskw2v.sampling.segments import cut_range
from daskw2v.store.arrays import open_subgroup, read_array, write_array
from daskw2v.store.checksums import ChunkChecksums
from daskw2v.store.durability import durable
from daskw2v.store.storage import Store
from daskw2v.training.columns.parts import ColumnsContext, PartRows, TableOrigin, WordRange, make_columns, open_part
from daskw2v.training.columns.step_schedule import ColumnStep
from daskw2v.training.devices import find_device
from daskw2v.training.loop.strategy import TaskClock, TaskTotals
from daskw2v.training.start.initial_rows import make_initial_weights
from daskw2v.types import Float32Array, Int32Array

_MOMENTS = "subwords-moments"  # group of a checkpoint
BLOCK_WORDS = 256  # words of a block
BATCH_BLOCKS = 8  # blocks of a minibatch: with more, the network takes too few steps; with fewer, too few workers help
_PYTORCH = 512 << 20  # bytes of a device that PyTorch's kernels and the workspaces of its libraries take, by estimate
_ROW_ALPHA = 0.05  # learning rate of rows; their change divided by it is the gradient
OUTPUT_RATE = 5.0  # learning rate of output rows divided by the network's, both by Adam, as measured when it pooled


class NetworkState(NamedTuple):
    """The network's weights, Adam's moments of the weights, and the number of steps that Adam took."""

    weights: Weights
    moments: AdamMoments
    steps: int


HeldNetwork: TypeAlias = NetworkState | TableOrigin


class BlockGradients(NamedTuple):
    """The result of a task: the network's gradient of each of its blocks of words, totals, and each block's losses.

    The gradients of all blocks are sent to the worker that sums them in their order: for each minibatch BATCH_BLOCKS
    times the bytes of a network. The losses are of words, summed over the columns of the step, shape (words of the
    block,).
    """

    gradients: list[Weights]
    totals: TaskTotals
    losses: list[Float32Array]


def network_bytes(vector_size: int) -> int:
    """Return the bytes that training the network takes on the device, besides the rows."""
    return _PYTORCH + task_bytes(vector_size)


def update_bytes(vector_size: int) -> int:
    """Return the bytes that a step of the network takes on one worker: gradients of all blocks, sum, two states."""
    return (BATCH_BLOCKS + 8) * training.weight_bytes(vector_size)


def task_bytes(vector_size: int) -> int:
    """Return the bytes that the gradients of a task's blocks take on a processor, besides the rows."""
    return training.training_bytes(vector_size, BLOCK_WORDS)


def minibatches(n_words: int) -> list[list[WordRange]]:
    """Return the blocks of words of each minibatch; each minibatch has words of all frequencies."""
    blocks = [WordRange(a, b) for a, b in cut_range(0, n_words, BLOCK_WORDS)]
    n = -(-len(blocks) // BATCH_BLOCKS)
    return [blocks[k::n] for k in range(n)]


def open_network(run: Run, held: HeldNetwork) -> NetworkState:
    """Task: return the network: `held`, or read from its checkpoint, or a new one before the first step."""
    if not isinstance(held, TableOrigin):
        return held
    if held.store is not None:
        return _read_network(held.store)
    weights = make_initial_weights(run, _alphabet(run))
    return NetworkState(weights, training.zero_moments(weights), 0)


def find_gradients(
    context: ColumnsContext,
    blocks: Sequence[WordRange],
    step: ColumnStep,
    weights: Weights,
    output: Sequence[PartRows],
) -> BlockGradients:
    """Task: train the rows of blocks of words on a step's columns; return the gradients of the network.

    Parameters
    ----------
    context
        The arguments that all tasks share.
    blocks
        Ranges of words.
    step
        The columns to train on; its learning rate is not read.
    weights
        The network that computes the rows.
    output
        The output rows of each part, which are fixed.
    """
    clock, run, pairs, device = TaskClock(), context.run, 0, find_device(context.run.device)
    with device.explaining_errors():
        name = device.torch_device()
        characters = [read_characters(run, words) for words in blocks]
        rows = [training.forward(weights, block_characters, name) for block_characters in characters]
        trainer = open_part(context, {INPUT: [np.concatenate(rows)]}, {OUTPUT: output}, 1)
        starts = np.cumsum([0, *map(len, rows)])
        losses = []
        for words, start in zip(blocks, starts, strict=False):
            contexts = read_contexts(context.matrix, words, (step.first, step.last))
            columns = make_columns(context, words, step._replace(alpha=_ROW_ALPHA), INPUT, contexts)
            losses.append(trainer.train(INPUT, columns, int(start)))
            pairs += int(np.count_nonzero(contexts >= 0))
        (trained,) = trainer.take(INPUT)
        after_rows = np.split(trained, starts[1:-1])
        changes = ((after - before) / np.float32(_ROW_ALPHA) for after, before in zip(after_rows, rows, strict=True))
        block_gradients = [training.gradients(weights, *block, name) for block in zip(characters, changes, strict=True)]
    loss = sum(float(values.sum(dtype=np.float64)) for values in losses)
    totals = TaskTotals(pairs, loss, bool(np.isfinite(trained).all()), 0, this_worker(), *clock.read())
    return BlockGradients(block_gradients, totals, losses)


def update_network(
    alpha: float, shares: Sequence[Sequence[WordRange]], network: NetworkState, *results: BlockGradients
) -> NetworkState:
    """Task: return the network after a step of Adam with the sum of all gradients, in the order of the blocks.

    Parameters
    ----------
    alpha
        Learning rate of the step.
    shares, results
        The blocks of each task that computed gradients, and the tasks' results.
    network
        The network before the step.
    """
    by_block = dict[WordRange, Weights]()
    for blocks, result in zip(shares, results, strict=True):
        by_block |= zip(blocks, result.gradients, strict=True)
    first, *rest = (by_block[words] for words in sorted(by_block))
    total = {name: sum((later[name] for later in rest), first[name]) for name in first}
    steps = network.steps + 1
    return NetworkState(*training.adam_step(network.weights, network.moments, total, alpha, steps), steps)


def center_network(network: NetworkState, mean: Float32Array) -> NetworkState:
    """Task: return the network with `mean`, shape (D,), subtracted from the rows that it computes."""
    return network._replace(weights={**network.weights, "bias": network.weights["bias"] - mean})


def make_rows(context: ColumnsContext, part: int, weights: Weights) -> Float32Array:
    """Task: return the input rows of the part of this number, shape (words, D), computed by the network."""
    run, device = context.run, find_device(context.run.device)
    with device.explaining_errors():
        name = device.torch_device()
        # Always in the same blocks, as rounding in a matrix product may depend on its number of rows
        blocks = [WordRange(a, b) for a, b in cut_range(*context.words[part], BLOCK_WORDS)]
        return share(np.concatenate([training.forward(weights, read_characters(run, words), name) for words in blocks]))


def join_losses(n_words: int, shares: Sequence[Sequence[WordRange]], *losses: Sequence[Float32Array]) -> Float32Array:
    """Task: return the losses of all words in a step, in their order, shape (1, n_words) float32.

    `shares` are the blocks of words of each task; `losses`, by task, the losses of each of its blocks.
    """
    joined = np.empty((1, n_words), np.float32)
    for blocks, block_losses in zip(shares, losses, strict=True):
        for words, values in zip(blocks, block_losses, strict=True):
            joined[0, slice(*words)] = values
    return joined


@durable()
def save_network(store: Store, run: Run, held: HeldNetwork, moments: bool) -> ChunkChecksums:
    """Task: write the network to a model; with `moments`, its moments and number of steps too, for a checkpoint.

    It returns no checksums: those of tables alone are kept.
    """
    network = open_network(run, held)
    write_subwords(store, Subwords(_alphabet(run), network.weights))
    if moments:
        group = create_part(store, _MOMENTS)
        group.attrs["steps"] = network.steps
        for name, values in network.moments._asdict().items():
            for weight, moment in values.items():
                write_array(group, f"{name}-{weight}", moment)
    return {}


def _read_network(store: Store) -> NetworkState:
    """Return the network of a checkpoint, with moments and number of steps; raise DamageError if it is missing."""
    subwords = read_subwords(store)
    if subwords is None:
        raise DamageError.of(f"{store.url}/subwords", "is missing")
    group = open_subgroup(store.open_group(), _MOMENTS)
    moments = (
        {weight: read_array(group, f"{name}-{weight}") for weight in subwords.weights} for name in AdamMoments._fields
    )
    return NetworkState(subwords.weights, AdamMoments(*moments), int(group.attrs["steps"]))  # type: ignore[arg-type]


@lru_cache(maxsize=2)
def _alphabet(run: Run) -> Alphabet:
    """Return the alphabet of the network: the characters of all words; cached."""
    return Alphabet.from_words(run.vocabulary.load().words)


@lru_cache(maxsize=2)
def _all_characters(run: Run) -> Int32Array:
    """Return the encoded characters of all words, shape (V, length) int32; cached."""
    return _alphabet(run).encode(run.vocabulary.load().words)


def read_characters(run: Run, words: WordRange) -> Int32Array:
    """Return the encoded characters of a range of words, shape (n, length) int32."""
    return _all_characters(run)[slice(*words)]
