"""Outcome and summary of a retraining run."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum
from typing import Any

from daskw2v.models.alignment import Alignment
from daskw2v.retraining.gates import Verdict, finite_or_none


class Outcome(IntEnum):
    """The outcome of a run. The value is the exit code of the command.

    0: published, the new version is served. 2: failed with an error. 3: nothing new, a published version already has
    this text. 4: stopped by a gate. 5: busy, another run holds the work directory. 6: superseded, another process
    changed what is served meanwhile. 7: staged, the new version is finished and not served. With 2 to 7 the run has not
    changed what is served.
    """

    PUBLISHED = 0
    FAILED = 2
    NOTHING_NEW = 3
    STOPPED = 4
    BUSY = 5
    SUPERSEDED = 6
    STAGED = 7

    @property
    def label(self) -> str:
        """Name of the outcome in messages and metrics."""
        return self.name.lower()


@dataclass(frozen=True, kw_only=True)
class Summary:
    """The summary of a run.

    Parameters
    ----------
    outcome
        The outcome of the run.
    work
        URL of the work directory.
    message
        The outcome as text; the text of the error if the run failed.
    started, seconds
        Start, with time zone, and duration.
    version
        The version that the run finished, and serves if the outcome is "published"; None if it finished none, or
        failed.
    served, served_since
        The version that is served after the run, and the time of its creation; None before the first version, or if it
        cannot be read.
    verdict, alignment
        Results of the gates and of the alignment; None if the run ended before these.
    figures
        Further numbers by name, such as tokens or words.
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
        """Return the summary as JSON types."""
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
