"""Tiny trainings on the processor, which compile the kernels of a strategy as its runs call them."""

import numpy as np

from daskw2v.config.params import Params
from daskw2v.features.settings import FEATURES, FeatureTable, has_features
from daskw2v.features.words import WordFeatures
from daskw2v.objectives.base import Rate
from daskw2v.objectives.registry import find_objective
from daskw2v.sampling.pairs import Pairs, WindowSize, distribute_pairs, pair_type
from daskw2v.sampling.segments import Segment
from daskw2v.sampling.settings import Partitioned
from daskw2v.sampling.skipgrams import Bucket
from daskw2v.training.devices.base import Threads
from daskw2v.training.devices.cpu import CpuPartitionTrainer, CpuReplicaTrainer
from daskw2v.training.devices.replica_trainer import TextPiece
from daskw2v.training.devices.settings import CPU
from daskw2v.types import Float32Array, Int64Array
from daskw2v.vocabulary.partition import Partitions

_WORDS, _TOKENS, _ALPHA = 64, 8, 0.01
_SENTENCE = Segment(np.arange(_TOKENS, dtype=np.int32), np.arange(_TOKENS), np.array([0, _TOKENS]))


def _counts(partition: int = 0) -> Int64Array:
    """Return the count of each word, shape (_WORDS,), whatever the partition."""
    return np.arange(_WORDS, 0, -1, dtype=np.int64)


def exercise_replica(params: Params) -> None:
    """Compile the kernel that trains text, of a run with these Params: train one sentence."""
    objective = find_objective(params.objective.name)
    features = _features(params)
    tables = objective.tables(params, _WORDS) | ({} if features is None else {FEATURES: 1})
    blocks = {name: [np.zeros((rows, params.vector_size), np.float32)] for name, rows in tables.items()}
    prepared = objective.prepare(params, _counts())
    trainer = CpuReplicaTrainer(objective, params, prepared, dict, blocks, Threads(1, CPU()), features=features)
    trainer.train([lambda: TextPiece(_SENTENCE, 0, _TOKENS, Rate(_ALPHA, 0.0, 0), 0)])


def _features(params: Params) -> WordFeatures | None:
    """Return one feature that all words have, with weights if a run's features have weights; None without features."""
    if not has_features(params):
        return None
    ones, rows = np.ones(_WORDS, np.float32), np.zeros(_WORDS, np.int32)
    return WordFeatures(np.arange(_WORDS + 1), rows, ones[:0] if FeatureTable.find(params) is None else ones, ones)


def exercise_partitions(params: Params) -> None:
    """Compile the kernel that trains buckets, of a run with these Params: train one pair."""
    objective = find_objective(params.objective.name)

    def rows() -> Float32Array:
        return np.zeros((_WORDS, params.vector_size), np.float32)

    trainer = CpuPartitionTrainer(objective, params, {0: rows}, {0: rows}, _counts, int(_counts().sum()), CPU())
    words = objective.partition_table(params, _counts())
    words.flags.writeable = False
    pair: Pairs = np.zeros(1, pair_type(_WORDS))
    trainer.train(0, 0, Bucket(pair, pair[:0]), _ALPHA, words, np.uint64(0))


def exercise_distribution(params: Params) -> None:
    """Compile the kernels that distribute pairs, of a run with these Params: distribute one sentence's to buckets."""
    windows = WindowSize(params.window, params.shrink_windows, np.uint64(0))
    partitions = Partitions(_WORDS, min(_WORDS, Partitioned.of(params).partitions))
    distribute_pairs(_SENTENCE, 0, _TOKENS, windows, partitions)
