"""Input rows that follow from a network: the tasks of strategy `columns` for words made of their characters.

In a step, minibatches of words take turns. The network makes their rows; these move along the columns as any rows do,
against output rows that stay; and their move is the gradient that goes back through the network, which takes one of
Adam's steps (Li et al. 2019, section 5.8). When all minibatches had their turn, the network makes the rows against
which the output rows move.

Gradients come by blocks of words and add up in the order of these: so they are the same bits on any number of workers
(data parallelism, section 3.3).
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple, TypeAlias

import numpy as np
from distributed import Client

from daskw2v.cluster import ask_workers, await_worker, this_worker
from daskw2v.errors import DamageError
from daskw2v.extras import needed
from daskw2v.models.store import read_subwords, write_subwords
from daskw2v.objectives.base import FloatArray
from daskw2v.objectives.subwords.alphabet import Alphabet, Characters
from daskw2v.objectives.subwords.network import Subwords, Weights
from daskw2v.objectives.subwords.training import Moments, adam_step, first_moments, forward, gradients
from daskw2v.sampling.context_matrix import read_contexts
from daskw2v.sampling.run import Run
from daskw2v.sampling.segments import cut
from daskw2v.shared import share
from daskw2v.storage import Store, read_array, write_array
from daskw2v.strategies.base import Clock, Totals
from daskw2v.strategies.beginning import first_weights
from daskw2v.strategies.column_schedule import Step
from daskw2v.strategies.part import INPUT, OUTPUT, Parts, Rows, Start, Words, columns_of, open_part

_MOMENTS = "subwords-moments"  # group of a checkpoint
_BLOCK = 256  # words whose gradients add up first
_BLOCKS = 8  # of a minibatch: with more words, the network takes too few steps; with fewer, too few workers help
_ROW_ALPHA = 0.05  # at which rows move before the network follows: their move by it is the gradient's length
OUTPUT_RATE = 5.0  # how many times as fast as the network the output rows learn: Adam's rates of both, as measured


class Network(NamedTuple):
    """The network's weights, Adam's moments of them, and the steps taken."""

    weights: Weights
    moments: Moments
    steps: int


Held: TypeAlias = Network | Start


class Followed(NamedTuple):
    """What a task asks of the network: the gradient of each of its blocks; what was done; each block's losses."""

    gradients: list[Weights]
    totals: Totals
    losses: list[FloatArray]


def check_workers(client: Client) -> None:
    """Refuse workers that cannot train a network.

    Raises
    ------
    MissingExtraError
        If one of them has no PyTorch.
    """
    await_worker(client)
    ask_workers(client, _import_torch)


def _import_torch() -> None:
    needed("torch", "torch")


def minibatches(n_words: int) -> list[list[Words]]:
    """Deal blocks of words into minibatches, so that each has words of all frequencies."""
    blocks = [Words(a, b) for a, b in cut(0, n_words, _BLOCK)]
    n = -(-len(blocks) // _BLOCKS)
    return [blocks[k::n] for k in range(n)]


def open_network(run: Run, held: Held) -> Network:
    """Return the network, wherever it is: held by a task, in a checkpoint, or nowhere, before its first step."""
    if not isinstance(held, Start):
        return held
    if held.store is not None:
        return _read_network(held.store)
    weights = first_weights(run, _alphabet(run))
    return Network(weights, first_moments(weights), 0)


def follow(parts: Parts, blocks: Sequence[Words], step: Step, held: Held, outputs: Sequence[Rows]) -> Followed:
    """Task: let the rows of blocks move along a step's columns; return what the network is asked for."""
    clock, run, pairs = Clock(), parts.run, 0
    weights = open_network(run, held).weights
    characters = [_characters(run, words) for words in blocks]
    rows = [forward(weights, of_block) for of_block in characters]
    worked = open_part(parts, {INPUT: [np.concatenate(rows)]}, {OUTPUT: outputs}, 1)
    starts = np.cumsum([0, *map(len, rows)])
    losses = []
    for words, start in zip(blocks, starts, strict=False):
        contexts = read_contexts(parts.matrix, words, (step.first, step.last))
        columns = columns_of(parts, words, step._replace(alpha=_ROW_ALPHA), INPUT, contexts)
        losses.append(worked.train(INPUT, columns, int(start)))
        pairs += int(np.count_nonzero(contexts >= 0))
    (moved,) = worked.take(INPUT)
    asked = [
        gradients(weights, of_block, (moved[a : a + len(before)] - before) / np.float32(_ROW_ALPHA))
        for of_block, before, a in zip(characters, rows, starts, strict=False)
    ]
    loss = sum(float(values.sum(dtype=np.float64)) for values in losses)
    finite = bool(np.isfinite(moved).all())
    totals = Totals(pairs, loss, finite, 0, this_worker(), *clock.read())
    return Followed(asked, totals, losses)


def learn(run: Run, alpha: float, shares: Sequence[Sequence[Words]], held: Held, *followed: Followed) -> Network:
    """Task: let the network take a step along the sum of all gradients, in the order of the blocks."""
    network, of_block = open_network(run, held), dict[Words, Weights]()
    for blocks, found in zip(shares, followed, strict=True):
        of_block |= zip(blocks, found.gradients, strict=True)
    first, *others = (of_block[words] for words in sorted(of_block))
    total = {name: sum((other[name] for other in others), first[name]) for name in first}
    steps = network.steps + 1
    return Network(*adam_step(network.weights, network.moments, total, alpha, steps), steps)


def shift(network: Network, centre: FloatArray) -> Network:
    """Task: the network whose rows are less their centre."""
    return network._replace(weights={**network.weights, "bias": network.weights["bias"] - centre})


def compose(parts: Parts, part: int, held: Held) -> FloatArray:
    """Task: the rows that the network makes of a part's words."""
    weights, (start, stop) = open_network(parts.run, held).weights, parts.words[part]
    # Block by block, as words are everywhere: how many rows a matrix product has may round them in other ways
    blocks = [forward(weights, _characters(parts.run, Words(a, b))) for a, b in cut(start, stop, _BLOCK)]
    return share(np.concatenate(blocks))


def join_losses(n_words: int, shares: Sequence[Sequence[Words]], *losses: Sequence[FloatArray]) -> FloatArray:
    """Task: put what words lost, in all blocks of a step, in order of the words: shape (1, n_words)."""
    joined = np.empty((1, n_words), np.float32)
    for blocks, of_blocks in zip(shares, losses, strict=True):
        for words, lost in zip(blocks, of_blocks, strict=True):
            joined[0, slice(*words)] = lost
    return joined


def save_network(store: Store, run: Run, held: Held, moments: bool) -> None:
    """Task: write the network into a model, or with its moments into a checkpoint."""
    network = open_network(run, held)
    write_subwords(store, Subwords(_alphabet(run), network.weights))
    if moments:
        group = store.open_group(writable=True).create_group(_MOMENTS, overwrite=True)
        group.attrs["steps"] = network.steps
        for name, values in network.moments._asdict().items():
            for weight, moment in values.items():
                write_array(group, f"{name}-{weight}", moment)


def _read_network(store: Store) -> Network:
    found = read_subwords(store)
    if found is None:
        raise DamageError.of(f"{store.url}/subwords", "is missing")
    group = (store / _MOMENTS).open_group()
    moments = ({weight: read_array(group, f"{name}-{weight}") for weight in found.weights} for name in Moments._fields)
    return Network(found.weights, Moments(*moments), int(group.attrs["steps"]))  # type: ignore[arg-type]


@lru_cache(maxsize=2)
def _alphabet(run: Run) -> Alphabet:
    """Return the characters that the network knows. Only a cache: a worker that lacks it makes it again."""
    return Alphabet.of(run.vocabulary.load().words)


@lru_cache(maxsize=2)
def _all_characters(run: Run) -> Characters:
    return _alphabet(run).encode(run.vocabulary.load().words)


def _characters(run: Run, words: Words) -> Characters:
    return _all_characters(run)[slice(*words)]
