"""Kernels for buckets of parts of CBOW windows, composed of what the objectives' kernels are composed of."""

from typing import Any, NamedTuple

import numpy as np

from daskw2v.kernels.jit import inline, kernel
from daskw2v.kernels.rng import draw
from daskw2v.objectives.cpu.centers import RUN, WindowTargets, source_row, table_addresses
from daskw2v.objectives.cpu.hidden import OWN, gather, scatter, train_hidden
from daskw2v.objectives.cpu.paths import PATHS, write_linked_path
from daskw2v.objectives.cpu.scratch import loss_of, scratch_addresses
from daskw2v.objectives.cpu.steps import MAX_TARGETS, prefetch_row, store_int64
from daskw2v.objectives.noise import BATCH
from daskw2v.sampling.hierarchy import row_of_negative
from daskw2v.types import Float32Array


class Carried(NamedTuple):
    """The sums that are carried from bucket to bucket, where windows are to be whole; empty where they are not.

    Parameters
    ----------
    sums
        Of each window the sum of its contexts, as its last buckets knew them, shape (windows, width).
    kept
        The share of each part in it, shape (parts, width).
    """

    sums: Float32Array
    kept: Float32Array


@inline
def _open(parts: Any, item: Any, last: Any, ahead: Any, there: Any, contexts: Any) -> Any:
    """List the contexts of a part; return their number, 0 where there is no such part."""
    n = 0
    if item < last:
        for c in range(parts.starts[item], parts.starts[item + 1]):
            store_int64(contexts, n, source_row(there, parts.contexts[c]))
            n += 1
        coming = min(item + ahead, last - 1)
        for c in range(parts.starts[coming], parts.starts[coming + 1]):
            prefetch_row(source_row(there, parts.contexts[c]), there.width)
    return n


@inline
def _complete(parts: Any, item: Any, n: Any, carried: Any, hidden: Any) -> None:
    """Turn the mean of a part's contexts into that of its whole window."""
    window = parts.windows[item]
    sums, kept, share = carried.sums[window], carried.kept[item], np.float32(1.0 / parts.sizes[window])
    for k in range(len(hidden)):
        now = np.float32(n) * hidden[k]
        sums[k] += now - kept[k]
        kept[k] = now
        hidden[k] = share * sums[k]


@kernel
def fill(parts: Any, first: Any, last: Any, source: Any, carried: Any) -> None:
    """Add the contexts of a bucket's parts to the sums of their windows."""
    rows = source.reshape(-1, carried.sums.shape[1])
    for item in range(first, last):
        for c in range(parts.starts[item], parts.starts[item + 1]):
            carried.kept[item] += rows[parts.contexts[c]]
        carried.sums[parts.windows[item]] += carried.kept[item]


@inline
def _draw(
    parts: Any, first: Any, last: Any, n: Any, words: Any, key: Any, tables: Any, states: Any, rows: Any, signs: Any,
    negative: Any, size: Any,
) -> None:  # fmt: skip
    """List the targets of n batches of parts from number `first` on: negatives for all, and each part's center."""
    n_shared, groups, row = len(rows) - BATCH, signs.shape[1], 4 * tables.width
    for i in range(n):
        states[i] = draw(key, first + i * BATCH)
    for k in range(n_shared):
        for i in range(n):
            rows[k, i] = tables.output + row_of_negative(states[i], k, words) * row
    signs[:n] = 0.0
    for lane in range(BATCH):
        own, at = rows[n_shared + lane], lane * MAX_TARGETS
        for i in range(n):
            item = first + i * BATCH + lane
            if item < last:
                own[i] = tables.output + parts.centers[item] * row
                signs[i, groups - 1, at + OWN] = 1.0
                for k in range(negative):
                    signs[i, k // size, at + k % size] = np.float32(0.0 if rows[k, i] == own[i] else -1.0)
            else:
                own[i] = rows[0, i]


@kernel
def train_noise(
    parts: Any, first: Any, last: Any, tables: Any, alpha: Any, words: Any, key: Any, negative: Any, scratch: Any,
    carried: Any, batch: Any, tile: Any,
) -> Any:  # fmt: skip
    """Train the parts first..last-1 against their centers and negatives, which four parts share; return the loss.

    Parameters
    ----------
    parts, carried
        `Parts` and `Carried`.
    tables, alpha, words, key, negative
        As for `objectives.sgns.buckets.cpu.train_bucket`.
    scratch
        As for `objectives.cbow_ns.cpu.train`.
    batch, tile
        Tuples as long as a batch has parts, and a group has negatives.
    """
    scratch.mantissa[:], scratch.exponent[:] = 1.0, 0
    rows, signs = scratch.rows.reshape(-1, RUN), scratch.signs[:-MAX_TARGETS].reshape(RUN, -1, BATCH * MAX_TARGETS)
    there, work = table_addresses(tables), scratch_addresses(scratch)
    groups, size, width, row = signs.shape[1], len(tile), tables.width, 4 * tables.width
    hidden = scratch.hidden.reshape(-1, width)
    updates, zeros, room = work.hidden + BATCH * row, work.hidden + 2 * BATCH * row, len(scratch.contexts) // BATCH
    own, whole = work.rows + groups * size * RUN * 8, len(carried.sums) > 0
    for start in range(first, last, (RUN - 1) * BATCH):
        n = min(RUN - 1, (last - start + BATCH - 1) // BATCH)
        _draw(parts, start, last, n, words, key, there, scratch.states, rows, signs, negative, size)
        for i in range(n):
            for lane in range(BATCH):
                item, contexts = start + i * BATCH + lane, work.contexts + lane * (8 * room)
                found = _open(parts, item, last, BATCH, there, contexts)
                scratch.lengths[lane] = found
                if found > 0:
                    gather(contexts, found, width, True, work.hidden + lane * row, zeros)
                    if whole:
                        _complete(parts, item, found, carried, hidden[lane])
            targets = WindowTargets(work.rows + i * 8, RUN, 8, groups, work.signs + i * groups * (4 * signs.shape[2]))
            train_hidden(work, work.vectors, 1, updates, targets, own + i * 8, width, alpha, batch, tile)
            for lane in range(BATCH):
                found = scratch.lengths[lane]
                scatter(work.contexts + lane * (8 * room), found, width, True, updates + lane * row)
                if whole and found > 0:
                    item = start + i * BATCH + lane
                    for k in range(width):
                        update = np.float32(found) * hidden[BATCH + lane, k]
                        carried.kept[item, k] += update
                        carried.sums[parts.windows[item], k] += update
    return loss_of(scratch)


@inline
def _train_hidden(scratch: Any, contexts: Any, n: Any, targets: Any, width: Any, alpha: Any, tile: Any) -> Any:
    update, zeros = scratch.hidden + 4 * width, scratch.hidden + 8 * width
    gather(contexts, n, width, True, scratch.hidden, zeros)
    train_hidden(scratch, scratch.vectors, 1, update, targets, targets.rows, width, alpha, (0,), tile)
    scatter(contexts, n, width, True, update)
    return 1


_train_listed = PATHS.trainer(_train_hidden)


@kernel
def train_paths(parts: Any, first: Any, last: Any, tables: Any, alpha: Any, links: Any, scratch: Any) -> Any:
    """Train the parts first..last-1 against the paths of their centers; return the loss.

    `links` are those of the output partition, as for `objectives.sg_hs.buckets.cpu.train_bucket`, and `scratch` is of
    `objectives.cpu.paths.path_scratch`.
    """
    scratch.mantissa[:], scratch.exponent[:] = 1.0, 0
    rows, signs = scratch.rows.reshape(RUN, -1), scratch.signs[: len(scratch.rows)].reshape(RUN, -1)
    there, work = table_addresses(tables), scratch_addresses(scratch)
    for start in range(first, last, RUN - 1):
        n = min(RUN - 1, last - start)
        for i in range(n):
            scratch.sizes[i] = write_linked_path(parts.centers[start + i], links, there, rows, signs, i)
        for i in range(n):
            found = _open(parts, start + i, last, 1, there, work.contexts)
            _train_listed(work, found, i, there.width, alpha, ())
    return loss_of(scratch)
