"""Shows how far a run is: bars on a terminal, plain lines elsewhere."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bars

from daskw2v.progress import Listener, Progress

_LINE_SECONDS = 5.0  # at most one plain line in so many seconds


def _joined(*parts: str) -> str:
    return "  ".join(part for part in parts if part)


def _rates(report: Progress) -> str:
    """Return words per second and loss, as far as they are known."""
    speed = "" if report.words_per_second is None else f"{report.words_per_second:,.0f} words/s"
    loss = "" if report.loss is None else f"loss {report.loss:.4f}"
    return _joined(speed, loss, report.message)


def _amount(report: Progress) -> str:
    """Return how much is done; nothing for a report that only brings a message."""
    return "" if report.total == 0 else f"{report.done:,.0f}/{report.total:,.0f} {report.unit}"


class Lines:
    """A listener that prints a stage's start, its end, and a line every few seconds between them.

    Parameters
    ----------
    write
        Takes a finished line.
    clock
        Tells the time in seconds.
    """

    def __init__(self, write: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._write = write
        self._clock = clock
        self._last: Progress | None = None
        self._written = True  # whether the last report was
        self._line_time = self._stage_time = 0.0
        self._stage_done = 0.0

    def __call__(self, report: Progress) -> None:
        """Write the report, or hold it back."""
        now = self._clock()
        starts = self._last is None or self._last.stage != report.stage
        if starts:
            self.finish()
            self._stage_time, self._stage_done = now, report.done
        self._last, self._written = report, False
        if starts or report.done >= report.total or now - self._line_time >= _LINE_SECONDS:
            self._line_time = now
            self.finish()

    def finish(self) -> None:
        """Write the last report, if it was held back."""
        if self._last is not None and not self._written:
            self._written = True
            parts = (_amount(self._last), _rates(self._last), self._remaining(self._last))
            self._write(f"{self._last.stage}: {_joined(*parts)}")

    def _remaining(self, report: Progress) -> str:
        gained, left = report.done - self._stage_done, report.total - report.done
        if gained <= 0 or left <= 0:
            return ""
        seconds = int((self._clock() - self._stage_time) * left / gained)
        return f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02} left"


def _bars(console: Console) -> tuple[Bars, Listener]:
    """Return bars for a terminal, and the listener that moves them."""
    bars = Bars(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[amount]}  {task.fields[rates]}"),
        console=console,
    )
    tasks: dict[str, TaskID] = {}

    def move(report: Progress) -> None:
        if report.total == 0:
            console.print(f"{report.stage}: {report.message}", markup=False, soft_wrap=True)
            return
        if report.stage not in tasks:
            tasks[report.stage] = bars.add_task(report.stage, amount="", rates="")
        bars.update(
            tasks[report.stage],
            completed=report.done,
            total=report.total,
            amount=_amount(report),
            rates=_rates(report),
        )

    return bars, move


@contextmanager
def watching(console: Console) -> Iterator[Listener]:
    """Give a listener that shows reports on the console, whichever kind it is."""
    if console.is_terminal:
        bars, move = _bars(console)
        with bars:
            yield move
        return
    lines = Lines(lambda line: console.print(line, markup=False, highlight=False, soft_wrap=True))
    try:
        yield lines
    finally:
        lines.finish()
