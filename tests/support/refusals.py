"""What a call is refused with, so that tests can say that it is not refused."""

from collections.abc import Callable
from typing import Any

from daskw2v.errors import Daskw2vError


def refusal(call: Callable[..., object], *args: Any, **options: Any) -> str | None:
    """Return the problem of the package's error that a call raises; None if it returns."""
    try:
        call(*args, **options)
    except Daskw2vError as error:
        return error.problem
    return None
