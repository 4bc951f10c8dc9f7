"""Skip-gram with negative sampling (Mikolov et al. 2013b), negatives shared by a window."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from daskw2v.objectives.base import FloatArray, Objective, Rate
from daskw2v.objectives.sgns import cpu
from daskw2v.objectives.tile import group_sizes
from daskw2v.params import Params
from daskw2v.sampling.alias import alias_table
from daskw2v.sampling.rng import Purpose, stream, uniform
from daskw2v.sampling.segments import Segment


class Update(NamedTuple):
    """What a kernel needs to know about the updates of one range of work.

    Parameters
    ----------
    window, shrink_windows, negative
        As in Params.
    alpha, slope, origin
        As in `Rate`.
    window_key, negative_key
        Streams of the draws of this epoch.
    """

    window: int
    shrink_windows: bool
    negative: int
    alpha: float
    slope: float
    origin: int
    window_key: np.uint64
    negative_key: np.uint64


class Prepared(NamedTuple):
    """The Params, and the alias table of the negatives, shape (V,) uint64."""

    params: Params
    noise: npt.NDArray[np.uint64]


def update_of(params: Params, rate: Rate, epoch: int) -> Update:
    """Return the kernel's view of a range of work in an epoch."""
    return Update(
        params.window,
        params.shrink_windows,
        params.negative,
        *rate,
        stream(params.seed, Purpose.WINDOW, epoch),
        stream(params.seed, Purpose.NEGATIVE, epoch),
    )


def _tables(params: Params, n_words: int) -> dict[str, int]:
    return {"input": n_words, "output": n_words}


def _initial(params: Params, table: str, start: int, stop: int) -> FloatArray:
    width = params.vector_size
    if table == "output":
        return np.zeros((stop - start, width), np.float32)
    draws = uniform(stream(params.seed, Purpose.INITIAL), start * width, (stop - start) * width)
    return ((draws - np.float32(0.5)) / np.float32(width)).reshape(-1, width)


def _prepare(params: Params, counts: npt.NDArray[np.int64]) -> Prepared:
    return Prepared(params, alias_table(counts.astype(np.float64) ** params.ns_exponent))


def _train_cpu(
    segment: Segment,
    first: int,
    last: int,
    tables: Mapping[str, FloatArray],
    width: int,
    rate: Rate,
    epoch: int,
    prepared: Prepared,
) -> tuple[int, float]:
    _, size = group_sizes(prepared.params.negative + 1)
    update = update_of(prepared.params, rate, epoch)
    result: Any = cpu.train(
        segment, first, last, tables["input"], tables["output"], width, update, prepared.noise, (0,) * size
    )
    return int(result[0]), float(result[1])


SGNS = Objective("sgns", _tables, _initial, _prepare, {"cpu": _train_cpu})
