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
_MIN_BAR, _MAX_BAR = 8, 40  # characters
_BESIDE_BAR = 72  # characters of a line of training without its bar, so that a line with the narrowest bar has 80


def _join(*parts: str) -> str:
    """Return the parts that are not empty, with two blanks between."""
    return "  ".join(part for part in parts if part)


def _format_number(number: float) -> str:
    """Return a number with three significant digits: 950, 1.23k, 45.6M."""
    for suffix in ("", "k", "M", "G"):
        if number < 999.5:  # more would round to 1000
            return f"{number:.3g}{suffix}"
        number /= 1000
    return f"{number:.2f}T"


def _format_duration(seconds: float) -> str:
    """Return a duration as hours, minutes and seconds: 1:02:03."""
    minutes, seconds = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"


def _format_rates(report: Progress) -> str:
    """Return words per second, loss and message of a report, as far as it has them, as one text."""
    speed = "" if report.words_per_second is None else f"{_format_number(report.words_per_second)} words/s"
    loss = "" if report.loss is None else f"loss {report.loss:.3f}"
    return _join(speed, loss, escaped(report.message))


def _format_message(report: Progress) -> str | None:
    """Return the line for a report that is only a message; None for a report of progress."""
    return f"{report.stage}: {escaped(report.message)}" if report.total == 0 else None


class Lines:
    """A listener that prints a line for each message, at the start and end of a stage, and every few seconds between.

    Parameters
    ----------
    write
        Prints a line.
    clock
        Returns the time in seconds, from any origin.
    """

    def __init__(self, write: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._write, self._clock = write, clock
        self._stage: str | None = None  # of the last report
        self._pending: Progress | None = None  # the last report, if it was not printed
        self._line_time = self._stage_time = 0.0  # of the last line, and of the first report of the stage
        self._stage_start = 0.0  # `done` of the first report of the stage

    def __call__(self, report: Progress) -> None:
        """Print a report, or keep it, to be printed later."""
        if line := _format_message(report):
            self.finish()
            self._write(line)
            return
        now = self._clock()
        is_new_stage = self._stage != report.stage
        if is_new_stage:
            self.finish()
            self._stage, self._stage_time, self._stage_start = report.stage, now, report.done
        self._pending = report
        if is_new_stage or report.done >= report.total or now - self._line_time >= _LINE_SECONDS:
            self._line_time = now
            self.finish()

    def finish(self) -> None:
        """Print the last report, if it was not printed yet."""
        report, self._pending = self._pending, None
        if report is not None:
            amount = f"{_format_number(report.done)}/{_format_number(report.total)} {report.unit}"
            self._write(f"{report.stage}: {_join(amount, _format_rates(report), self._remaining_time(report))}")

    def _remaining_time(self, report: Progress) -> str:
        """Return a text with the estimated time to the end of a report's stage; "" if it cannot be estimated."""
        progress, remaining = report.done - self._stage_start, report.total - report.done
        if progress <= 0 or remaining <= 0:
            return ""
        return f"{_format_duration((self._clock() - self._stage_time) * remaining / progress)} left"


class _TimeColumn(ProgressColumn):
    """A column of the bars with the remaining time of a stage; after its end, with the elapsed time."""

    max_refresh = 0.5

    def render(self, task: Task) -> Text:
        """Return the text of the column for the bar of a stage."""
        if task.finished_time is not None:
            return Text(f"took {_format_duration(task.finished_time)}")
        return Text("left -:--:--" if task.time_remaining is None else f"left {_format_duration(task.time_remaining)}")


def _make_bars(console: Console) -> tuple[Bars, Listener]:
    """Return bars for a terminal, and the listener that updates them."""
    bars = Bars(
        TextColumn("{task.description}"),
        BarColumn(bar_width=min(max(console.width - _BESIDE_BAR, _MIN_BAR), _MAX_BAR)),
        TextColumn("{task.percentage:>3.0f}% of {task.fields[amount]}"),
        _TimeColumn(Column(no_wrap=True)),
        # The only column that is shortened if the line is too long
        TextColumn(
            "{task.fields[rates]}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1)
        ),
        console=console,
        expand=True,
        speed_estimate_period=math.inf,  # a round may take longer than any window
    )
    tasks: dict[str, TaskID] = {}

    def update(report: Progress) -> None:
        """Move the bar of a report's stage, or print its message."""
        if line := _format_message(report):
            console.print(line, markup=False, highlight=False, soft_wrap=True)
            return
        amount, rates = f"{_format_number(report.total)} {report.unit}", _format_rates(report)
        if report.stage not in tasks:
            tasks[report.stage] = bars.add_task(report.stage, total=report.total, amount=amount, rates=rates)
        bars.update(tasks[report.stage], total=report.total, completed=report.done, amount=amount, rates=rates)

    return bars, update


def _can_draw(console: Console) -> bool:
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
    if _can_draw(console):
        bars, update = _make_bars(console)
        with bars:
            yield update
        return
    lines = Lines(lambda line: console.print(line, markup=False, highlight=False, soft_wrap=True))
    try:
        yield lines
    finally:
        lines.finish()


@contextmanager
def listening(listener: Watching) -> Iterator[Listener]:
    """Yield the listener that the argument `listener` of a call stands for.

    Parameters
    ----------
    listener
        A function that is called with `Progress`; "show", to show the progress; or None, for silence.

    Raises
    ------
    ParameterError
        If `listener` is of another type.
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
