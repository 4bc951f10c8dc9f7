"""Progress of stages, and the listeners that receive it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from daskw2v.safe_text import masked


@dataclass(frozen=True)
class Progress:
    """Progress of a stage: `done` of `total` in `unit`, with speed, loss or a message if known."""

    stage: str
    done: float
    total: float
    unit: str
    words_per_second: float | None = None
    loss: float | None = None
    message: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "message", masked(self.message))  # it may quote an error of a library


Listener = Callable[[Progress], None]
# The argument `listener` of calls: "show" shows progress on stderr, None does not
Watching = Listener | Literal["show"] | None


def saying(listener: Listener, stage: str, unit: str) -> Callable[[str], None]:
    """Return a function that sends messages of a stage to a listener, without progress."""
    return lambda message: listener(Progress(stage, 0, 0, unit, message=message))


def silent(_: Progress) -> None:
    """Ignore progress."""
