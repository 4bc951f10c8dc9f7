"""Columns of the word-context matrix on the CPU: rows of one table are trained, the rows of the other are fixed.

BATCH neighbouring rows share their negatives, which are drawn anew for each column: a target is loaded once for all of
them. The update of a row depends on no other row of its table, so threads and workers may divide a table in any way
that does not cut a batch.
"""

from typing import Any

import numpy as np

from daskw2v.kernels.alias import pick
from daskw2v.kernels.jit import inline, kernel
from daskw2v.kernels.rng import GOLDEN, draw, mix
from daskw2v.kernels.simd import SLOTS, aligned_zeros
from daskw2v.objectives.base import MatrixColumns, PartTables
from daskw2v.objectives.context_matrix.updates import BETA1, BETA2, adam, step_size
from daskw2v.objectives.cpu.centers import RUN
from daskw2v.objectives.cpu.hidden import EACH, OWN, dots_hidden, move_vectors
from daskw2v.objectives.cpu.steps import MAX_TARGETS, address, gradients_each, group_sizes, load_int64
from daskw2v.objectives.noise import BATCH, PreparedNoise
from daskw2v.sampling.settings import SampledContexts
from daskw2v.types import Float32Array

_BATCH = (0,) * BATCH  # as long as a batch has rows
_PRODUCTS = BATCH * MAX_TARGETS  # losses of a batch, as products: MAX_TARGETS of each row


def train(
    columns: MatrixColumns, first: int, last: int, tables: PartTables, prepared: PreparedNoise, losses: Float32Array
) -> None:
    """Train the rows of the batches first..last-1 in place, on all columns, one after the other.

    Parameters
    ----------
    columns
        The contexts of the words in the columns.
    first, last
        Range of batches, each BATCH rows from the first word of `columns` on.
    tables
        The trained rows, the rows of these words first, and the fixed rows of the other table.
    prepared
        The Params, and the alias table that negatives are drawn from.
    losses
        Each word's loss, summed over the columns, is added to this array, shape (words,) float32.
    """
    negative = SampledContexts.of(prepared.params).negative
    groups, size = group_sizes(negative, OWN)
    use_adam = len(tables.trained) > tables.trained_floats  # the moments follow
    scratch = _make_scratch(groups, size, tables.width)
    _train(columns, first, last, tables, negative, prepared.noise, use_adam, losses, scratch, (0,) * size)


def _make_scratch(groups: int, size: int, width: int) -> tuple[Any, ...]:
    """Return the working memory of a run: states, addresses of rows, signs, values, mantissas, exponents, gradients.

    `groups` and `size` are the number of groups of negatives, and the negatives of a group.
    """
    return (
        aligned_zeros(RUN, np.uint64),
        aligned_zeros((groups * size + 2 * BATCH) * RUN, np.int64).reshape(-1, RUN),
        aligned_zeros(RUN * groups * _PRODUCTS).reshape(RUN, groups, _PRODUCTS),
        aligned_zeros(groups * _PRODUCTS),
        aligned_zeros(RUN * _PRODUCTS).reshape(RUN, _PRODUCTS),
        aligned_zeros(RUN * _PRODUCTS, np.int32).reshape(RUN, _PRODUCTS),
        aligned_zeros((BATCH + 1) * width),
    )


@kernel
def _train(
    columns: Any, first: Any, last: Any, tables: Any, negative: Any, noise: Any, use_adam: Any, losses: Any,
    scratch: Any, tile: Any,
) -> None:  # fmt: skip
    """Train all columns of the batches first..last-1, in runs of at most RUN steps; a step is one column of one batch.

    `columns`, `tables` and `losses` are as in `train`, `scratch` is the result of `_make_scratch`. `tile` is a tuple
    with one element per negative of a group.
    """
    n_columns = columns.contexts.shape[1]
    across = min(n_columns, RUN)
    down = RUN // across
    for b in range(first, last, down):
        for j in range(0, n_columns, across):
            run = b, min(b + down, last), j, min(j + across, n_columns)
            _write_steps(columns, run, tables, negative, noise, scratch, len(tile))
            _train_run(columns, run, tables, use_adam, scratch, tile)
            _add_losses(run, scratch, losses)


@inline
def _train_run(columns: Any, run: Any, tables: Any, use_adam: Any, scratch: Any, tile: Any) -> None:
    """Train a run (first, last, left, right): the columns left..right-1 of the batches first..last-1."""
    first, last, left, right = run
    rows, signs, values, mantissa, exponent, gradient = scratch[1:]
    groups, width, size = signs.shape[1], tables.width, len(tile)
    n_shared, row = groups * size, 4 * width
    mantissa[: last - first], exponent[: last - first] = 1.0, 0
    shared, sign, value, updates = address(rows), address(signs), address(values), address(gradient)
    own, vectors = shared + n_shared * RUN * 8, shared + (n_shared + BATCH) * RUN * 8
    step, between, half = size * RUN * 8, BATCH * MAX_TARGETS * 4, SLOTS * 4
    rate = np.float32(1.0 if use_adam else columns.alpha)
    for b in range(first, last):
        base = load_int64(vectors, 0)
        ones, powers = address(mantissa) + (b - first) * between, address(exponent) + (b - first) * between
        for j in range(left, right):
            for g in range(groups):
                dots_hidden(
                    vectors, RUN, shared + g * step, own, 8, RUN, width, value + g * between, _BATCH, tile, EACH
                )
            for g in range(groups):
                for offset in range(0, between, half):
                    product = g * between + offset
                    gradients_each(value + product, SLOTS, sign + product, rate, ones + offset, powers + offset, tile)
            start, apart, end = base, width, base
            if use_adam:
                start, apart, end = updates + BATCH * row, 0, updates
            for g in range(groups):
                move_vectors(
                    start, apart, end, shared + g * step, own, 8, RUN, width, value + g * between, _BATCH, tile
                )
                start, apart = end, width
            if use_adam:
                alpha = np.float32(step_size(columns.alpha, columns.first + j))
                adam(base, updates, 4 * tables.trained_floats, BATCH * width, alpha, BETA1, BETA2)
            shared, own, vectors, sign = shared + 8, own + 8, vectors + 8, sign + groups * between


@inline
def _write_steps(columns: Any, run: Any, tables: Any, negative: Any, noise: Any, scratch: Any, size: Any) -> None:
    """Write the addresses of rows and the signs of a run's steps: batch after batch, column after column.

    `size` is the number of negatives of a group.
    """
    (first, last, left, right), (states, rows, signs) = run, scratch[:3]
    contexts, row, across = columns.contexts, 4 * tables.width, right - left
    n, n_shared, groups = (last - first) * across, len(rows) - 2 * BATCH, signs.shape[1]
    trained, fixed = address(tables.trained), address(tables.fixed)
    for b in range(first, last):
        for j in range(left, right):
            counter = (np.uint64(columns.first + j) << np.uint64(32)) + np.uint64(columns.row // BATCH + b)
            states[(b - first) * across + j - left] = draw(columns.key, counter)
    for k in range(n_shared):
        salt = np.uint64(k + 1) * GOLDEN
        for i in range(n):
            rows[k, i] = fixed + pick(noise, mix(states[i] + salt)) * row
    for member in range(BATCH):
        context_rows, vectors, lane = rows[n_shared + member], rows[n_shared + BATCH + member], member * MAX_TARGETS
        for b in range(first, last):
            word, i = b * BATCH + member, (b - first) * across
            for j in range(left, right):
                context = contexts[word, j] if word < len(contexts) else -1
                vectors[i] = trained + word * row
                context_rows[i] = fixed + max(context, 0) * row
                signs[i, groups - 1, lane + OWN] = np.float32(context >= 0)
                i += 1
        for k in range(negative):
            group, product, drawn = k // size, lane + k % size, rows[k]
            for i in range(n):
                has_context = signs[i, groups - 1, lane + OWN]
                signs[i, group, product] = np.float32(0.0) if drawn[i] == context_rows[i] else -has_context


@inline
def _add_losses(run: Any, scratch: Any, losses: Any) -> None:
    """Add the losses of a run to `losses`, shape (words,)."""
    first, last, mantissa, exponent = run[0], run[1], scratch[4], scratch[5]
    for b in range(first, last):
        for member in range(BATCH):
            word, product, power = b * BATCH + member, 1.0, 0
            for lane in range(member * MAX_TARGETS, (member + 1) * MAX_TARGETS):
                product *= mantissa[b - first, lane]
                power += exponent[b - first, lane]
            if word < len(losses):
                losses[word] += np.float32(np.log(product) + power * np.log(2.0))
