"""What a run of retraining came to."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum
from typing import Any

from daskw2v.retraining.align import Alignment
from daskw2v.retraining.gates import Verdict, finite_or_none


class Outcome(IntEnum):
    """How a run ended; the value is the exit code of its command.

    0: published, a new version is served. 2: failed, as any command that ends with an error of ours. 3: nothing new,
    the text is that of the version that is served. 4: stopped by a gate, the version before is served still. 5: busy,
    somebody else is at work there. With 2 to 5 what is served has not changed.
    """

    PUBLISHED = 0
    FAILED = 2
    NOTHING_NEW = 3
    STOPPED = 4
    BUSY = 5

    @property
    def label(self) -> str:
        """The name as text and metrics have it."""
        return self.name.lower()


@dataclass(frozen=True, kw_only=True)
class Summary:
    """What a run came to.

    Parameters
    ----------
    outcome
        How it ended.
    work
        URL of the work directory.
    message
        The outcome in words, of an error its text.
    started, seconds
        When it began, with its time zone, and how long it took.
    version
        The version it trained, published or not; None where it trained none.
    served, served_since
        The version that is served when it ended, and when that was made; None before the first.
    verdict, alignment
        What the gates and the alignment found, as far as the run came.
    figures
        Other numbers by name, such as tokens or words.
    """

    outcome: Outcome
    work: str
    message: str
    started: datetime
    seconds: float
    version: str | None = None
    served: str | None = None
    served_since: datetime | None = None
    verdict: Verdict | None = None
    alignment: Alignment | None = None
    figures: Mapping[str, float] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return JSON types."""
        return {
            "outcome": self.outcome.label,
            "exit_code": int(self.outcome),
            "work": self.work,
            "message": self.message,
            "started": self.started.isoformat(timespec="seconds"),
            "seconds": round(self.seconds, 3),
            "version": self.version,
            "served": self.served,
            "served_since": None if self.served_since is None else self.served_since.isoformat(timespec="seconds"),
            "gates": None if self.verdict is None else self.verdict.as_dict(),
            "alignment": None if self.alignment is None else self.alignment.as_dict(),
            "figures": {name: finite_or_none(value) for name, value in self.figures.items()},
        }
