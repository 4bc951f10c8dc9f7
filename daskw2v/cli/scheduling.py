"""`daskw2v serve-schedule`."""

import signal
import sys
from datetime import datetime
from pathlib import Path

import click

from daskw2v.cli.program import main
from daskw2v.retraining.cron import read_cron
from daskw2v.retraining.schedule import Runner, Schedule


@main.command("serve-schedule", no_args_is_help=True)
@click.option(
    "--config",
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="TOML file of `daskw2v retrain`, read anew by each run.",
)
@click.option(
    "--cron",
    required=True,
    metavar="EXPRESSION",
    help="When to run: minute, hour, day of month, month, day of week, such as '0 3 * * *'.",
)
@click.option("--timezone", metavar="NAME", help="Time zone of these times, such as Europe/Berlin.  [default: local]")
@click.option(
    "--misfire-grace",
    type=click.IntRange(1),
    default=3600,
    show_default=True,
    help="Seconds that a missed run may be late; after them it waits for its next time.",
)
@click.option("--now", is_flag=True, help="Run once at the start, too: for what was missed before it.")
@click.option(
    "--timeout",
    type=click.FloatRange(0, min_open=True),
    help="Seconds after which a run is told to end; it is killed a minute later.  [default: none]",
)
def serve_schedule(
    config: Path, cron: str, timezone: str | None, misfire_grace: int, now: bool, timeout: float | None
) -> None:
    """Run `daskw2v retrain` at set times, each run in a process of its own, until SIGTERM or Ctrl-C.

    A time that comes while a run is at work is left out. Times that were missed, because the machine slept,
    are one run, if it is not too late for the last of them; those before the start are not known.

    A signal is passed on to the run at work, which is waited for. It goes on next time.
    """
    trigger = read_cron(cron, timezone)
    runner = Runner([sys.executable, "-m", "daskw2v", "retrain", "--config", str(config)], _say, timeout=timeout)
    schedule = Schedule(runner, trigger, _say, misfire_grace=misfire_grace, now=now)
    for signum in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signum, lambda number, _: schedule.stop(number))
    schedule.serve()


def _say(line: str) -> None:
    click.echo(f"{datetime.now().astimezone():%Y-%m-%d %H:%M:%S %Z} {line}", err=True)
