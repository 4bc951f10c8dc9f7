"""W2V-Vanilla with subwords, the baseline of figures 20 and 21: plain minibatches whose input rows a network makes.

As `benchmarks.vanilla` has it: pairs of center and context in the order of the text, negatives of their own for each
pair, the loss summed over a batch, and one step of Adam for each batch, which moves all output rows by their moments,
as Chainer's does. But a center's row is what the network of `subwords` computes of its characters, once for each
distinct word of a batch.
"""

import time
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from daskw2v.kernels.rng import Purpose, stream
from daskw2v.models.vectors import Vectors
from daskw2v.objectives.subwords.alphabet import Alphabet
from daskw2v.objectives.subwords.training import forward, import_torch, initial_weights, rows_of_tensors
from daskw2v.sampling.hierarchy import word_weights
from daskw2v.sampling.reader import SegmentReader
from daskw2v.sampling.segments import Segment, cut, keep_thresholds
from daskw2v.shards.layout import Corpus
from daskw2v.store.storage import Store
from daskw2v.types import Int32Array
from daskw2v.vocabulary.count import StoredVocabulary


@dataclass(frozen=True)
class VanillaSubwords:
    """What is trained.

    Parameters
    ----------
    pairs
        How many are trained, from the begin of the text on; at most an epoch.
    batch
        Pairs of a step of Adam.
    alpha
        Learning rate.
    negative, window, vector_size, sample, seed
        As in Params; windows do not shrink.
    """

    pairs: int
    batch: int = 1024
    alpha: float = 0.001
    negative: int = 5
    window: int = 2
    vector_size: int = 100
    sample: float = 0.0
    seed: int = 1


class Trained(NamedTuple):
    """The words' vectors; seconds of reading and training; pairs trained; mean loss of a pair of the last tenth."""

    vectors: Vectors
    seconds: float
    pairs: int
    loss: float


def train_vanilla_subwords(
    work: Store, corpus: Corpus, vocabulary: StoredVocabulary, settings: VanillaSubwords
) -> Trained:
    """Train by PyTorch, on one thread."""
    torch, s, known = import_torch(), settings, vocabulary.load()
    alphabet = Alphabet.of(known.words)
    characters = alphabet.encode(known.words)
    lengths = np.count_nonzero(characters, axis=1)
    first = initial_weights(s.vector_size, len(alphabet), s.seed)
    network = {name: torch.tensor(values, requires_grad=True) for name, values in first.items()}
    outputs = torch.zeros((len(lengths), s.vector_size), requires_grad=True)
    adam = torch.optim.Adam([*network.values(), outputs], lr=s.alpha, fused=True)
    weights = word_weights(known.counts, None)
    noise, random = np.cumsum(weights / weights.sum()), np.random.default_rng(s.seed)
    losses, began = list[float](), time.perf_counter()
    pairs = first_pairs(work, corpus, vocabulary, s)
    for start in range(0, pairs.shape[1], s.batch):
        centers, contexts = pairs[:, start : start + s.batch]
        words, places = np.unique(centers, return_inverse=True)
        drawn = np.searchsorted(noise, random.random((len(centers), s.negative)), side="right")
        targets = np.column_stack([contexts, np.minimum(drawn, len(noise) - 1)])
        signs = np.where(targets == contexts[:, None], 0.0, -1.0).astype(np.float32)  # one that is the context: none
        signs[:, 0] = 1.0
        rows = rows_of_tensors(torch, network, characters[words, : lengths[words].max()])
        met = torch.nn.functional.embedding(torch.from_numpy(targets), outputs)
        sign = torch.from_numpy(signs)
        dots = torch.einsum("bd,btd->bt", rows[torch.from_numpy(places)], met)
        loss = -(torch.nn.functional.logsigmoid(sign * dots) * sign.abs()).sum()
        adam.zero_grad()
        loss.backward()
        adam.step()
        losses.append(loss.item() / len(centers))
    seconds = time.perf_counter() - began
    learned = {name: tensor.detach().numpy() for name, tensor in network.items()}
    vectors = Vectors(known, forward(learned, characters))
    return Trained(vectors, seconds, pairs.shape[1], float(np.mean(losses[-max(1, len(losses) // 10) :])))


def first_pairs(work: Store, corpus: Corpus, vocabulary: StoredVocabulary, settings: VanillaSubwords) -> Int32Array:
    """Return the pairs to train, as `pairs_of` does."""
    s, found, n = settings, list[Int32Array](), 0
    reader, keep = SegmentReader(work, corpus, vocabulary), keep_thresholds(vocabulary.load().counts, s.sample)
    for start, stop in cut(0, corpus.n_tokens):
        segment, _ = reader.read(start, stop, s.window, keep, stream(s.seed, Purpose.SUBSAMPLE, 0))
        found.append(pairs_of(segment, *segment.centers(start, stop), s.window))
        n += found[-1].shape[1]
        if n >= s.pairs:
            break
    return np.concatenate(found, axis=1)[:, : s.pairs]


def pairs_of(segment: Segment, first: int, last: int, window: int) -> Int32Array:
    """Return the pairs of a range of centers in the order of the text, centers above contexts, shape (2, n)."""
    tokens = segment.tokens
    sentence = np.searchsorted(segment.bounds, np.arange(len(tokens)), side="right")
    centers, apart = np.arange(first, last)[:, None], np.delete(np.arange(-window, window + 1), window)
    others = centers + apart
    near = np.clip(others, 0, len(tokens) - 1)
    paired = (others == near) & (sentence[near] == sentence[centers])
    return np.stack([tokens[np.broadcast_to(centers, others.shape)[paired]], tokens[others[paired]]])
