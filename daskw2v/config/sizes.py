"""Settings that are sizes in bytes: a number, or text as Dask reads it."""

from numbers import Real
from typing import Any

from dask.utils import parse_bytes

from daskw2v.config.settings import Constraint, is_number


def _is_size(value: Any) -> bool:
    try:
        given = bool(value.strip()) if isinstance(value, str) else is_number(value, Real)
        return given and parse_bytes(_plain(value)) > 0
    except (ValueError, OverflowError):
        return False


def _plain(size: Any) -> str | int:
    """Return text as it is, and a number as Python's own."""
    return size if isinstance(size, str) else int(size)


SIZE = Constraint(_is_size, "a size in bytes, as a number or as text such as '32 MiB'", _plain)
MEMORY = Constraint(
    lambda v: (isinstance(v, str) and v == "auto") or _is_size(v),
    "'auto' or a size in bytes, as a number or as text such as '4 GiB'",
    _plain,
)
