"""Progress of stages, and the listeners that receive it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from daskw2v.safe_text import masked


@dataclass(frozen=True)
class Progress:
    """The progress of a stage: `done` of `total` units, where `unit` names them; with speed, loss or a message if any.

    `total` is 0 where there is only a message.
    """

    stage: str
    done: float
    total: float
    unit: str
    words_per_second: float | None = None
    loss: float | None = None
    message: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "message", masked(self.message))  # the message may quote an error of a library


Listener = Callable[[Progress], None]
# The type of the argument `listener` of calls: "show" shows progress on stderr, None shows nothing
Watching = Listener | Literal["show"] | None


def message_sender(listener: Listener, stage: str, unit: str) -> Callable[[str], None]:
    """Return a function that sends a message of a stage to a listener; `unit` is as in `Progress`."""
    return lambda message: listener(Progress(stage, 0, 0, unit, message=message))


def silent(_: Progress) -> None:
    """Ignore progress: a listener that does nothing."""
