"""Cron's expressions as APScheduler's triggers, which read days of the week in another way."""

import re
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from daskw2v.errors import ParameterError
from daskw2v.extras import needed

EXTRA = "schedule"
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat", "sun")  # cron's 0 to 7; APScheduler's 0 is Monday
_NUMBERS = re.compile(r"(?:\*|(?P<first>[0-7])(?:-(?P<last>[0-7]))?)(?:/(?P<step>[1-7]))?")
_FORM = "Write minute, hour, day of month, month and day of week, such as '0 3 * * *': every day at 3:00."


def read_cron(expression: str, timezone: str | None = None) -> Any:
    """Return the trigger of a cron expression.

    Parameters
    ----------
    expression
        Minute, hour, day of month, month, day of week.
    timezone
        Where it is that time, as the IANA database has it; where this machine is by default.

    Returns
    -------
    apscheduler.triggers.cron.CronTrigger
        The trigger.

    Raises
    ------
    ParameterError
        If there is no such time or no such zone.
    MissingExtraError
        If APScheduler is not installed.
    """
    zone = None if timezone is None else _zone(timezone)
    try:
        minute, hour, day, month, weekday = expression.split()
    except ValueError:
        raise ParameterError(f"cron={expression!r} is not five fields.", _FORM) from None
    if day != "*" and weekday != "*":  # either of them is enough for cron, APScheduler wants both
        raise ParameterError(
            f"cron={expression!r} names days of the month and days of the week.", "Write * for one of the two."
        )
    cron = needed("apscheduler.triggers.cron", EXTRA).CronTrigger
    try:
        trigger = cron(
            minute=minute, hour=hour, day=day, month=month, day_of_week=_weekdays(weekday), timezone=zone
        )  # fmt: skip
    except ValueError as error:
        raise ParameterError(f"cron={expression!r} is no cron expression: {error}.", _FORM) from None
    if trigger.get_next_fire_time(None, datetime.now(UTC)) is None:
        raise ParameterError(f"cron={expression!r} is a time that never comes.", _FORM)
    return trigger


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # unknown; no name at all; a folder of the database
        raise ParameterError(
            f"timezone={name!r} is not in the IANA database of this machine.",
            "Give a name such as Europe/Berlin or UTC; where the machine has no database, run: pip install tzdata.",
        ) from None


def _weekdays(field: str) -> str:
    """Return days of the week by name where they are numbers."""
    return ",".join(_named(part) for part in field.split(","))


def _named(part: str) -> str:
    match = _NUMBERS.fullmatch(part)
    if match is None or part == "*":
        return part
    step = int(match["step"] or 1)
    first = int(match["first"] or 0)
    last = int(match["last"] or (6 if match["step"] else first))
    if last < first:
        raise ValueError(f"{part} ends before it begins")
    return ",".join(_DAYS[first : last + 1 : step])
