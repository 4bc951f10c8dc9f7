"""What a running stage tells whoever watches it."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Progress:
    """One report of a stage; `done` of `total` in `unit`, and what else is known by then."""

    stage: str
    done: float
    total: float
    unit: str
    words_per_second: float | None = None
    loss: float | None = None
    message: str = ""


Listener = Callable[[Progress], None]


def silent(_: Progress) -> None:
    """Listen to nothing."""
