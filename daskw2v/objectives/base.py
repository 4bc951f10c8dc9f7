"""What an objective is: a value that describes tables, first rows and kernels; no code branches on its name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from daskw2v.params import Params

FloatArray = npt.NDArray[np.float32]


class Rate(NamedTuple):
    """The learning rate of a range of work: alpha + slope * (position - origin) at a corpus position."""

    alpha: float
    slope: float
    origin: int


# (segment, first, last, flat tables by name, row length, rate, epoch, prepared) -> (pairs, loss)
Trainer = Callable[[Any, int, int, Mapping[str, FloatArray], int, Rate, int, Any], tuple[int, float]]


@dataclass(frozen=True)
class Objective:
    """One training objective.

    Parameters
    ----------
    name
        As in Params.
    tables
        Number of rows of each table, given the Params and the number of words. All have vector_size columns;
        "input" holds the words' vectors.
    initial
        Rows start..stop-1 of a table before training: a pure function, so that any worker can make any rows.
    prepare
        What all kernels of a run read besides the tables, from the Params and the words' counts.
    trainers
        The function that trains a range of centers in place, by device.
    """

    name: str
    tables: Callable[[Params, int], dict[str, int]]
    initial: Callable[[Params, str, int, int], FloatArray]
    prepare: Callable[[Params, npt.NDArray[np.int64]], Any]
    trainers: Mapping[str, Trainer]
