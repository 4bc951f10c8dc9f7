"""W2V-Vanilla of words made of their characters: plain minibatches whose input rows the network of `subwords` makes.

As in `vanilla`, pairs are in the order of the text, each has negatives of its own, and Adam takes a step a batch. A
center's row is computed once for each distinct word of a batch; all output rows move, as Chainer's Adam has it.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.texts import Text
from daskw2v.kernels.rng import Purpose, stream
from daskw2v.objectives.subwords.network import Alphabet
from daskw2v.objectives.subwords.training import compute_vector_tensors, forward, import_torch, initial_weights
from daskw2v.sampling.reader import SegmentReader
from daskw2v.sampling.segments import Segment, cut_range, keep_thresholds
from daskw2v.sampling.weights import word_weights
from daskw2v.types import Float32Array, Int32Array

if TYPE_CHECKING:
    from benchmarks.context_matrix.vanilla import Vanilla


def train_network(text: Text, settings: "Vanilla") -> tuple[Float32Array, int]:
    """Train by PyTorch on one thread; return the words' vectors, shape (V, vector_size), and the number of pairs."""
    torch, s, known = import_torch(), settings, text.vocabulary.load()
    alphabet, n_pairs = Alphabet.from_words(known.words), 0
    characters = alphabet.encode(known.words)
    lengths = np.count_nonzero(characters, axis=1)
    first = initial_weights(s.vector_size, len(alphabet), s.seed)
    network = {name: torch.tensor(values, requires_grad=True) for name, values in first.items()}
    outputs = torch.zeros((len(lengths), s.vector_size), requires_grad=True)
    adam = torch.optim.Adam([*network.values(), outputs], lr=s.alpha, fused=True)
    noise, random = np.cumsum(word_weights(known.counts, s.ns_exponent)), np.random.default_rng(s.seed)
    for pairs in batches_of(text, s):
        centers, contexts = pairs
        words, places = np.unique(centers, return_inverse=True)
        drawn = np.searchsorted(noise, random.random((len(centers), s.negative)) * noise[-1], side="right")
        targets = np.column_stack([contexts, np.minimum(drawn, len(noise) - 1)])
        signs = np.where(targets == contexts[:, None], 0.0, -1.0).astype(np.float32)  # no negative of the context
        signs[:, 0] = 1.0
        rows = compute_vector_tensors(torch, network, characters[words, : lengths[words].max()])
        dots = torch.einsum("bd,btd->bt", rows[torch.from_numpy(places)], outputs[torch.from_numpy(targets)])
        sign = torch.from_numpy(signs)
        adam.zero_grad()
        (-(torch.nn.functional.logsigmoid(sign * dots) * sign.abs()).sum()).backward()
        adam.step()
        n_pairs += len(centers)
    return forward({name: tensor.detach().numpy() for name, tensor in network.items()}, characters), n_pairs


def segments_of(text: Text, settings: "Vanilla") -> Iterator[tuple[Segment, int, int, int, int]]:
    """Yield the subsampled text of all epochs: a segment, its range of centers, the epoch, and the positions so far."""
    length, reader = text.corpus.n_tokens, SegmentReader(text.work, text.corpus, text.vocabulary)
    keep = keep_thresholds(text.vocabulary.load().counts, settings.sample)
    for epoch in range(settings.epochs):
        key = stream(settings.seed, Purpose.SUBSAMPLE, epoch)
        for start, stop in cut_range(0, length):
            segment, _ = reader.read(start, stop, settings.window, keep, key)
            yield segment, *segment.centers(start, stop), epoch, epoch * length + stop


def batches_of(text: Text, settings: "Vanilla") -> Iterator[Int32Array]:
    """Yield batches of pairs in the order of the text, centers above contexts, shape (2, batch); the last has less."""
    left = np.empty((2, 0), np.int32)
    for segment, first, last, *_ in segments_of(text, settings):
        pairs = np.concatenate([left, pairs_of(segment, first, last, settings.window)], axis=1)
        ends = range(settings.batch, pairs.shape[1] + 1, settings.batch)
        yield from (pairs[:, end - settings.batch : end] for end in ends)
        left = pairs[:, len(ends) * settings.batch :]
    if left.size:
        yield left


def pairs_of(segment: Segment, first: int, last: int, window: int) -> Int32Array:
    """Return the pairs of the centers first..last-1 in the order of the text, centers above contexts, shape (2, n)."""
    tokens = segment.tokens
    sentence = np.searchsorted(segment.bounds, np.arange(len(tokens)), side="right")
    centers, apart = np.arange(first, last)[:, None], np.delete(np.arange(-window, window + 1), window)
    others = centers + apart
    near = np.clip(others, 0, len(tokens) - 1)
    is_pair = (others == near) & (sentence[near] == sentence[centers])
    pairs: Int32Array = np.stack([tokens[np.broadcast_to(centers, others.shape)[is_pair]], tokens[others[is_pair]]])
    return pairs
