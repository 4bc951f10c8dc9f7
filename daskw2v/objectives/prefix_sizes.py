"""`prefix_sizes`: the numbers of first columns of the vectors that are to be models by themselves."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from daskw2v.config.settings import Constraint
from daskw2v.errors import ParameterError

STEP = 16  # columns that a processor's kernels take at once
MOST = 7  # prefixes that kernels have room for
LARGEST = 65520  # below the largest vector_size


def _size(value: Any) -> int:
    """Return a number, given as such or as text, as the command line gives it."""
    if isinstance(value, str):
        return int(value)
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(value)
    return int(value)


def _sizes(values: Any) -> tuple[int, ...]:
    return tuple(map(_size, values))


def _are_sizes(values: Any) -> bool:
    if not isinstance(values, list | tuple):
        return False
    try:
        sizes = _sizes(values)
    except (TypeError, ValueError):
        return False
    rises = all(a < b for a, b in pairwise((0, *sizes)))
    return len(sizes) <= MOST and rises and not any(size % STEP or size > LARGEST for size in sizes)


PREFIX_SIZES = Constraint(
    _are_sizes, f"a list of at most {MOST} rising multiples of {STEP}, {LARGEST:,} at most", _sizes, item="COLUMNS"
)  # fmt: skip


def check_prefixes(sizes: Sequence[int], vector_size: int) -> None:
    """Refuse prefixes that are no part of a vector.

    Raises
    ------
    ParameterError
        If the largest is not below `vector_size`.
    """
    if sizes and sizes[-1] >= vector_size:
        raise ParameterError(
            f"prefix_sizes={tuple(sizes)} are not all below vector_size={vector_size}.",
            "Leave out what is not: all columns together are always trained.",
        )
