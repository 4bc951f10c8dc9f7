"""Numbers of updates of each row, and the rates at which updates fade: merges need them besides the changes.

Near an optimum, an update of a row by gradient descent shrinks its distance to it: k updates at a rate a leave the
share exp(-a k h) of a distance along an eigenvector of the loss's Hessian with eigenvalue h. The Hessian of a
window's loss by a row is the slope of the sigmoid times a sum over the rows that it meets (`objectives.curvature`), and
is nearly the same for all rows of a table: a matrix of D x D numbers, computed from the common model.
"""

from collections.abc import Sequence
from functools import lru_cache
from threading import Lock
from typing import NamedTuple

import numpy as np

from daskw2v.features.settings import FEATURES
from daskw2v.features.words import total_weights
from daskw2v.kernels.multiply import multiply
from daskw2v.objectives.curvature import Moments, add_moments
from daskw2v.objectives.registry import find_objective
from daskw2v.sampling.run import Run
from daskw2v.sampling.segments import keep_thresholds
from daskw2v.training.start.blocks import TableBlock
from daskw2v.training.start.features import features_of
from daskw2v.training.start.initial_rows import prepared_of
from daskw2v.types import Float32Array, Float64Array

_SLOPE = 0.1  # of the sigmoid, on average: .25 at first, .104 to .108 in later training (100 MB and 300 MB, sgns)
_SAMPLED = 1 << 11  # rows
_preparing = Lock()  # merges of many blocks begin at once: one of them reads the counts


class Curvature(NamedTuple):
    """The Hessian of a window's loss by a row of a table that it touches.

    Parameters
    ----------
    values
        Its eigenvalues, shape (D,) float32.
    vectors
        Its eigenvectors, one a column, shape (D, D) float32.
    """

    values: Float32Array
    vectors: Float32Array


NO_CURVATURE = Curvature(np.empty(0, np.float32), np.empty((0, 0), np.float32))


def touched_rows(run: Run) -> dict[str, Float64Array]:
    """Return how often a window touches each row, by table, (rows,). Only a cache, as `prepared_of` is.

    Rows of a composed vector count by the square of their share of it, as the curvature along them does.
    """
    with _preparing:
        return _touched_rows(run)


@lru_cache(maxsize=2)
def _touched_rows(run: Run) -> dict[str, Float64Array]:
    touched = find_objective(run.params.objective.name).touched
    assert touched is not None  # all objectives have it that train windows
    rows = touched(prepared_of(run), run.vocabulary.read_counts())
    features = features_of(run)
    if run.features is None or features is None:
        return rows
    total = features.own + total_weights(features)
    owners = np.repeat(np.arange(features.n_words), np.diff(features.offsets))
    known, shares = features.rows >= 0, features.expand_weights() / total[owners]
    of_features = (rows["input"][owners] * shares**2)[known]
    return {
        **rows,
        "input": rows["input"] * (features.own / total) ** 2,
        FEATURES: np.bincount(features.rows[known], of_features, run.features.rows),
    }


def windows_of_position(run: Run) -> float:
    """Return the share of positions that subsampling leaves."""
    with _preparing:
        return _windows_of_position(run)


@lru_cache(maxsize=2)
def _windows_of_position(run: Run) -> float:
    counts = run.vocabulary.read_counts()
    kept = counts * (keep_thresholds(counts, run.params.sample) / 2.0**32)
    return float(kept.sum() / max(1, counts.sum()))


def moments_of(run: Run, block: TableBlock, rows: Float32Array) -> Moments:
    """Task: return the moments of a block's rows, shape (rows, D) float32; of many rows, from a sample."""
    weights, columns = touched_rows(run)[block.table][block.start : block.stop], rows.shape[1]
    first, second = np.zeros(columns), np.zeros((columns, columns))
    # All rows of the most frequent words count; of the others, rows evenly apart, each for the rows around it
    apart = max(1, len(rows) // _SAMPLED)
    for sample, each in ((slice(0, _SAMPLED), 1), (slice(_SAMPLED, None, apart), apart)):
        sampled = np.ascontiguousarray(rows[sample])
        weighted = sampled * (each * weights[sample, None]).astype(np.float32)
        first += weighted.sum(axis=0)
        second += multiply(np.ascontiguousarray(weighted.T), sampled)
    return Moments(float(weights.sum()), first, second)


def curvature_of(run: Run, blocks: Sequence[TableBlock], moments: Sequence[Moments]) -> dict[str, Curvature]:
    """Task: return the curvature of each table from the moments of all blocks."""
    parts = dict[str, list[Moments]]()
    for block, of_block in zip(blocks, moments, strict=True):
        parts.setdefault("input" if block.table == FEATURES else block.table, []).append(of_block)
    sums = {table: add_moments(*of_blocks) for table, of_blocks in parts.items()}
    hessians = find_objective(run.params.objective.name).curvature(run.params, sums)
    curvatures = {table: _eigen(hessian) for table, hessian in hessians.items()}
    return {**curvatures, FEATURES: curvatures["input"]}


def _eigen(matrix: Float64Array) -> Curvature:
    values, vectors = np.linalg.eigh(matrix)
    return Curvature((_SLOPE * np.maximum(values, 0)).astype(np.float32), vectors.astype(np.float32))
