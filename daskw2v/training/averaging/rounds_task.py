"""A task that trains several rounds of one replica."""

import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from distributed import Client, Future

from daskw2v.cluster import gather
from daskw2v.training.averaging.round_schedule import AveragingRound
from daskw2v.training.loop.strategy import ModelRows, RoundReport
from daskw2v.training.loop.totals import TaskTotals


class RoundsTask:
    """What is known of such a task.

    Parameters
    ----------
    client
        The cluster that does it.
    rounds
        Its rounds, one after the other.
    totals
        The future of the totals of all of their steps.
    takes
        As in `Trainers`.
    rows
        Both tables after the last round.
    """

    def __init__(
        self,
        client: Client,
        rounds: Sequence[AveragingRound],
        totals: Future,
        takes: Mapping[str, int] | None,
        rows: ModelRows | None,
    ) -> None:
        self._client, self._rounds, self._totals, self._takes, self._rows = client, rounds, totals, takes, rows

    def reports(self, number: int) -> Iterator[RoundReport]:
        """Wait for the task, unless that was done; yield the steps of one of its rounds."""
        done, seconds = self._done
        longer = seconds / sum(totals.seconds for totals in done)  # than the task took its worker
        this, first = self._rounds[number], sum(len(before.steps) for before in self._rounds[:number])
        rows = self._rows if number == len(self._rounds) - 1 else None
        for step, totals in zip(this.steps, done[first:], strict=False):
            yield RoundReport(step.stop, step.works[0].alpha_stop, [totals], rows, seconds=longer * totals.seconds)

    @cached_property
    def _done(self) -> tuple[list[TaskTotals], float]:
        """The totals of all steps, and the seconds that their reader waited for them."""
        began, what = time.monotonic(), f"Round {self._rounds[0].number}"
        (found,) = gather(self._client, [self._totals], what, self._takes)
        return found, time.monotonic() - began
