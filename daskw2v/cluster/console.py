"""Shows the progress of a run: bars on a terminal, plain lines elsewhere."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from rich.console import Console
from rich.progress import BarColumn, ProgressColumn, Task, TaskID, TextColumn
from rich.progress import Progress as Bars
from rich.table import Column
from rich.text import Text

from daskw2v.errors import ParameterError
from daskw2v.progress import Listener, Progress, Watching, silent
from daskw2v.safe_text import escaped

_LINE_SECONDS = 5.0  # between plain lines
_BAR_WIDTHS = 8, 40  # narrowest and widest
_BESIDE_BAR = 72  # characters of a line of training without its bar, so that both fit into 80


def _joined(*parts: str) -> str:
    return "  ".join(part for part in parts if part)


def _short(number: float) -> str:
    """Return a number with three digits: 950, 1.23k, 45.6M."""
    for suffix in ("", "k", "M", "G"):
        if number < 999.5:  # more would round to 1000
            return f"{number:.3g}{suffix}"
        number /= 1000
    return f"{number:.2f}T"


def _clock_face(seconds: float) -> str:
    minutes, seconds = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"


def _rates(report: Progress) -> str:
    """Return words per second, loss and message, as far as known."""
    speed = "" if report.words_per_second is None else f"{_short(report.words_per_second)} words/s"
    loss = "" if report.loss is None else f"loss {report.loss:.3f}"
    return _joined(speed, loss, escaped(report.message))


def _said(report: Progress) -> str | None:
    """Return the line for a report that is only a message; None for a report of progress."""
    return f"{report.stage}: {escaped(report.message)}" if report.total == 0 else None


class Lines:
    """A listener that prints a line at the start and end of a stage, and every few seconds between.

    Parameters
    ----------
    write
        Prints a line.
    clock
        Returns the time in seconds.
    """

    def __init__(self, write: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._write, self._clock = write, clock
        self._stage: str | None = None  # of the last report
        self._kept: Progress | None = None  # the last report, if it was not printed
        self._line_time = self._stage_time = self._stage_done = 0.0

    def __call__(self, report: Progress) -> None:
        """Print the report, or keep it for later."""
        if said := _said(report):
            self.finish()
            self._write(said)
            return
        now = self._clock()
        starts = self._stage != report.stage
        if starts:
            self.finish()
            self._stage, self._stage_time, self._stage_done = report.stage, now, report.done
        self._kept = report
        if starts or report.done >= report.total or now - self._line_time >= _LINE_SECONDS:
            self._line_time = now
            self.finish()

    def finish(self) -> None:
        """Print the last report if it was kept."""
        report, self._kept = self._kept, None
        if report is not None:
            amount = f"{_short(report.done)}/{_short(report.total)} {report.unit}"
            self._write(f"{report.stage}: {_joined(amount, _rates(report), self._remaining(report))}")

    def _remaining(self, report: Progress) -> str:
        gained, left = report.done - self._stage_done, report.total - report.done
        if gained <= 0 or left <= 0:
            return ""
        return f"{_clock_face((self._clock() - self._stage_time) * left / gained)} left"


class _TimeColumn(ProgressColumn):
    """The remaining time; after the end, the elapsed time."""

    max_refresh = 0.5

    def render(self, task: Task) -> Text:
        if task.finished_time is not None:
            return Text(f"took {_clock_face(task.finished_time)}")
        return Text("left -:--:--" if task.time_remaining is None else f"left {_clock_face(task.time_remaining)}")


def _bars(console: Console) -> tuple[Bars, Listener]:
    """Return bars for a terminal, and the listener that updates them."""
    least, most = _BAR_WIDTHS
    bars = Bars(
        TextColumn("{task.description}"),
        BarColumn(bar_width=min(max(console.width - _BESIDE_BAR, least), most)),
        TextColumn("{task.percentage:>3.0f}% of {task.fields[whole]}"),
        _TimeColumn(Column(no_wrap=True)),
        # The only column that is shortened if the line is too long.
        TextColumn(
            "{task.fields[rates]}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1)
        ),
        console=console,
        expand=True,
        speed_estimate_period=math.inf,  # a round may take longer than any window
    )
    tasks: dict[str, TaskID] = {}

    def move(report: Progress) -> None:
        if said := _said(report):
            console.print(said, markup=False, highlight=False, soft_wrap=True)
            return
        whole, rates = f"{_short(report.total)} {report.unit}", _rates(report)
        if report.stage not in tasks:
            tasks[report.stage] = bars.add_task(report.stage, total=report.total, whole=whole, rates=rates)
        bars.update(tasks[report.stage], total=report.total, completed=report.done, whole=whole, rates=rates)

    return bars, move


def _draws(console: Console) -> bool:
    """Return whether bars can be drawn: on an interactive terminal, or in a notebook with ipywidgets."""
    return console.is_interactive or (console.is_jupyter and find_spec("ipywidgets") is not None)


@contextmanager
def show_progress(console: Console | None = None) -> Iterator[Listener]:
    """Yield a listener that shows the progress of several calls together.

    It draws bars on a terminal and in a notebook with ipywidgets, and prints a line every few seconds elsewhere.

    Parameters
    ----------
    console
        Console to print to; stderr by default.

    Examples
    --------
    >>> small = daskw2v.Params(vector_size=8, min_count=1, epochs=1)
    >>> with daskw2v.show_progress() as listener:
    ...     for window in (2, 5):
    ...         params = small.replace(window=window)
    ...         vectors = daskw2v.train("text.txt", work="windows", params=params, listener=listener)
    """
    console = console or Console(stderr=True, highlight=False)
    if _draws(console):
        bars, move = _bars(console)
        with bars:
            yield move
        return
    lines = Lines(lambda line: console.print(line, markup=False, highlight=False, soft_wrap=True))
    try:
        yield lines
    finally:
        lines.finish()


@contextmanager
def listening(listener: Watching) -> Iterator[Listener]:
    """Yield the listener for a call's argument `listener`.

    Parameters
    ----------
    listener
        The argument: a listener, "show" or None.

    Raises
    ------
    ParameterError
        If `listener` is none of these.
    """
    if isinstance(listener, str) and listener == "show":
        with show_progress() as shown:
            yield shown
    elif listener is None or callable(listener):
        yield listener or silent
    else:
        raise ParameterError(
            f"listener={listener!r} is not a function.",
            "Give a function that takes Progress, None for silence, or leave it out.",
        )
