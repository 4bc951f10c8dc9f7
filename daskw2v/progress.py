"""What a running stage tells whoever watches it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal


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
# What a call is given: "show" shows how far it is on stderr, None does not
Watching = Listener | Literal["show"] | None


def saying(listener: Listener, stage: str, unit: str) -> Callable[[str], None]:
    """Return what tells a listener a message of a stage that gets no further meanwhile."""
    return lambda message: listener(Progress(stage, 0, 0, unit, message=message))


def silent(_: Progress) -> None:
    """Listen to nothing."""
