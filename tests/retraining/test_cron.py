"""Times as cron reads them."""

import sys
from datetime import UTC, datetime, timedelta

import pytest

from daskw2v.errors import MissingExtraError, ParameterError
from daskw2v.retraining.cron import read_cron

SUNDAY = datetime(2026, 11, 22, tzinfo=UTC)


def days(expression):
    """Return on which days of a week it fires: 0 is Sunday, as for cron."""
    trigger, time, found = read_cron(expression, "UTC"), SUNDAY, []
    while (time := trigger.get_next_fire_time(None, time)) < SUNDAY + timedelta(days=7):
        found.append((time - SUNDAY).days)
        time += timedelta(minutes=1)
    return found


@pytest.mark.parametrize(
    ("weekday", "expected"),
    [
        ("*", [0, 1, 2, 3, 4, 5, 6]), ("0", [0]), ("7", [0]), ("1", [1]), ("6", [6]), ("1-5", [1, 2, 3, 4, 5]),
        ("5-7", [0, 5, 6]), ("*/2", [0, 2, 4, 6]), ("1-5/2", [1, 3, 5]), ("2/3", [2, 5]), ("0,3", [0, 3]),
        ("sun", [0]), ("mon-fri", [1, 2, 3, 4, 5]), ("Sat,1", [1, 6]),
    ],
)  # fmt: skip
def test_read_cron__counts_days_of_the_week_as_cron_does(weekday, expected):
    assert days(f"0 3 * * {weekday}") == expected


def test_read_cron__keeps_to_a_time_zone_and_its_summer():
    trigger = read_cron("30 3 * * *", "Europe/Berlin")
    winter, summer = (trigger.get_next_fire_time(None, SUNDAY + timedelta(days=d)) for d in (0, 200))
    assert (winter.astimezone(UTC).hour, summer.astimezone(UTC).hour) == (2, 1)
    assert (winter.hour, winter.minute, summer.hour) == (3, 30, 3)


def test_read_cron__takes_local_time_by_default():
    assert read_cron("0 3 * * *").get_next_fire_time(None, SUNDAY).hour == 3


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("", "five fields"), ("0 3 * *", "five fields"), ("0 3 * * * *", "five fields"), ("@daily", "five fields"),
        ("60 3 * * *", "60"), ("0 24 * * *", "24"), ("x 3 * * *", "x"), ("0 3 0 * *", "0"), ("*/0 3 * * *", "no cron"),
        ("0 3 * * 8", "8"), ("0 3 * * 5-1", "5-1 ends before it begins"), ("0 3 * * sun-tue", "no cron expression"),
        ("0 3 1 * 1", "days of the month and days of the week"),
        ("0 3 30 2 *", "never comes"), ("0 3 ? * *", "no cron"),
    ],
)  # fmt: skip
def test_read_cron__refuses_what_is_no_time(expression, why):
    with pytest.raises(ParameterError, match=why) as caught:
        read_cron(expression)
    assert f"cron={expression!r}" in caught.value.problem
    assert caught.value.remedy.startswith("Write ")


@pytest.mark.parametrize("name", ["Europe/Atlantis", "Europe", "", "../etc/passwd", "/etc/passwd", "a\0b"])
def test_read_cron__refuses_what_is_no_time_zone(name):
    with pytest.raises(ParameterError, match=r"timezone=.* is not in the IANA database.*Europe/Berlin"):
        read_cron("0 3 * * *", name)


def test_read_cron__names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "apscheduler.triggers.cron", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'daskw2v\[schedule\]'"):
        read_cron("0 3 * * *")
