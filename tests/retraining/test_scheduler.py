"""A command at set times, and signals while it runs.

Commands are kept by pipes until the test lets them go: opening a pipe's end waits for who opens the other.
"""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from queue import SimpleQueue

import pytest
from apscheduler.triggers.base import BaseTrigger
from apscheduler.triggers.interval import IntervalTrigger
from click.testing import CliRunner

from daskw2v.cli import main, scheduling
from daskw2v.retraining.schedule import Runner, Schedule, meaning

ROOT = Path(__file__).parents[2]
FAR = datetime(2300, 1, 1, tzinfo=UTC)
# Tells that it is up, and ends with the number of the signal that comes: blocked ones are not lost.
CATCHER = """
import signal, sys
signals = {signal.SIGTERM, signal.SIGINT, signal.SIGUSR1}
signal.pthread_sigmask(signal.SIG_BLOCK, signals)
open(sys.argv[1], "w").close()
found = signal.sigwait(signals)
if found == signal.SIGUSR1:
    open(sys.argv[1], "w").close()
    found = signal.sigwait(signals)
sys.exit(50 + found)
"""


class Times(BaseTrigger):
    """Fires at these times."""

    def __init__(self, *times):
        self.times = times

    def get_next_fire_time(self, previous_fire_time, now):
        return next((t for t in self.times if previous_fire_time is None or t > previous_fire_time), None)


def ago(**since):
    return datetime.now(UTC) - timedelta(**since)


class Said(SimpleQueue):
    """Lines, which a test can wait for."""

    def __init__(self):
        self.lines = []

    def until(self, pattern):
        while True:
            self.lines.append(self.get(timeout=60))
            if re.search(pattern, self.lines[-1]):
                return self.lines[-1]

    def rest(self):
        while not self.empty():
            self.lines.append(self.get())
        return self.lines


@pytest.fixture
def said():
    return Said()


@pytest.fixture
def gate(tmp_path):
    """A pipe, and a command that waits for an exit code in it."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    return pipe, ["sh", "-c", f'read code < "{pipe}"; exit $code']


@pytest.fixture
def served():
    """Serve schedules in threads; all of them have ended afterwards."""
    running = []

    def serve(schedule):
        thread = threading.Thread(target=schedule.serve)
        thread.start()
        running.append((schedule, thread))
        return thread

    yield serve
    for schedule, thread in running:
        schedule.stop(signal.SIGKILL)
        thread.join()


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (0, "published (exit code 0)"), (2, "failed (exit code 2)"), (3, "nothing_new (exit code 3)"),
        (4, "stopped (exit code 4)"), (5, "busy (exit code 5)"), (1, "crashed (exit code 1)"),
        (-9, "ended by SIGKILL"), (130, "ended by SIGINT"), (255, "crashed (exit code 255)"),
    ],
)  # fmt: skip
def test_meaning__is_the_outcome_or_the_signal(code, expected):
    assert meaning(code) == expected


@pytest.mark.parametrize("code", [0, 3])
def test_schedule__says_start_end_outcome_and_next_time(code, said, gate, served):
    pipe, command = gate
    served(Schedule(Runner(command, said.put), Times(ago(seconds=0), FAR), said.put))
    said.until("A run has started: process [0-9]+")
    pipe.write_text(f"{code}\n")
    line = said.until("has ended")
    assert re.fullmatch(r"The run has ended after 0:..:..: (.+)\. The next run: 2300-01-01 00:00:00 UTC\.", line)
    assert meaning(code) in line


def test_schedule__runs_one_at_a_time(said, gate, served):
    pipe, command = gate
    served(Schedule(Runner(command, said.put), IntervalTrigger(seconds=0.02), said.put))
    for _ in range(3):
        said.until("has started")
        said.until("left out: the one before is still at work")
        pipe.write_text("0\n")
        said.until("has ended")
    order = [line for line in said.lines if "has started" in line or "has ended" in line]
    assert ["started" in line for line in order] == [True, False] * 3


def test_schedule__makes_one_run_of_several_missed_times(said, gate, served):
    pipe, command = gate
    times = Times(ago(hours=3), ago(hours=2), ago(minutes=30), FAR)
    served(Schedule(Runner(command, said.put), times, said.put))
    said.until("has started")
    pipe.write_text("0\n")
    assert "The next run: 2300" in said.until("has ended")
    assert sum("has started" in line for line in said.rest()) == 1


def test_schedule__leaves_out_what_is_too_late(said, served):
    times = Times(ago(hours=3), ago(hours=2), FAR)
    thread = served(Schedule(Runner(["false"], said.put), times, said.put))
    assert "too late for it. The next run: 2300" in said.until("was missed")
    assert thread.is_alive()
    assert not any("has started" in line for line in said.rest())


def test_schedule__runs_what_is_late_within_its_grace(said, served):
    served(Schedule(Runner(["true"], said.put), Times(ago(hours=2), FAR), said.put, misfire_grace=3 * 3600))
    assert "published" in said.until("has ended")


def test_schedule__goes_on_after_a_run_that_could_not_be_started(said, served, tmp_path):
    served(Schedule(Runner([str(tmp_path / "absent")], said.put), IntervalTrigger(seconds=0.02), said.put))
    for _ in range(2):
        assert "absent" in said.until("could not be started")


def test_schedule__can_run_at_once(said, served):
    served(Schedule(Runner(["true"], said.put), Times(FAR), said.put, now=True))
    assert "The next run: 2300" in said.until("has ended")


def test_stop__passes_the_signal_on_and_waits(said, served, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    command = [sys.executable, "-c", CATCHER, str(pipe)]
    schedule = Schedule(Runner(command, said.put), Times(FAR), said.put, now=True)
    thread = served(schedule)
    pipe.read_bytes()  # it is up
    schedule.stop(signal.SIGUSR1)
    pipe.read_bytes()  # the signal has come, and the run is still waited for
    assert thread.is_alive()
    schedule.stop(signal.SIGINT)
    thread.join()
    said.until("SIGUSR1: no other run starts")
    assert said.rest()[-1].endswith(f"crashed (exit code {50 + signal.SIGINT}). The next run: none.")


def test_stop__waits_for_a_run_that_is_about_to_end(said, served):
    """It ends while the scheduler waits for it, which holds its locks then."""

    began = threading.Event()

    class LastMoment:
        def run(self):
            began.set()
            while schedule._scheduler.running:
                time.sleep(0.01)
            return 0

        def stop(self, signum):
            return False

    schedule = Schedule(LastMoment(), Times(ago(seconds=0)), said.put)
    thread = served(schedule)
    began.wait()
    schedule.stop(signal.SIGTERM)
    thread.join(60)
    assert not thread.is_alive()


def test_stop__ends_at_once_where_nothing_runs(said, served):
    schedule = Schedule(Runner(["true"], said.put), Times(FAR), said.put)
    thread = served(schedule)
    schedule.stop(signal.SIGTERM)
    thread.join()
    assert said.rest() == ["The next run: 2300-01-01 00:00:00 UTC.", "SIGTERM: no other run starts."]


def test_runner__starts_nothing_after_stop(said, tmp_path):
    runner = Runner(["touch", str(tmp_path / "ran")], said.put)
    assert runner.stop(signal.SIGTERM) is False
    assert runner.run() is None
    assert not (tmp_path / "ran").exists()


def test_runner__tells_a_run_that_takes_too_long_to_end(said):
    assert Runner(["sleep", "1000"], said.put, timeout=0.05).run() == -signal.SIGTERM
    assert "longer than 0.05 s: it was told to end" in said.rest()[-1]


def test_runner__kills_a_run_that_does_not_end_and_its_workers(said, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)  # inherited
    try:
        runner = Runner(["sh", "-c", f'sleep 1000 > "{pipe}" & wait'], said.put, timeout=0.05, patience=0.05)
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        assert runner.run() == -signal.SIGKILL
    finally:
        signal.signal(signal.SIGTERM, before)
    assert "was killed" in said.rest()[-1]
    os.set_blocking(reader, True)
    assert os.read(reader, 1) == b""  # the end: nobody has the other end any more
    os.close(reader)


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "retrain.toml"
    path.write_text("")
    return str(path)


def test_command__hands_its_options_on(config, monkeypatch):
    made = {}

    class Fake:
        def __init__(self, *args, **options):
            made[type(self).__name__] = args, options

        def serve(self):
            made["handlers"] = [signal.getsignal(s) for s in (signal.SIGTERM, signal.SIGINT)]

    monkeypatch.setattr(scheduling, "Runner", type("FakeRunner", (Fake,), {}))
    monkeypatch.setattr(scheduling, "Schedule", type("FakeSchedule", (Fake,), {}))
    before = [signal.getsignal(s) for s in (signal.SIGTERM, signal.SIGINT)]
    options = ["--cron", "0 3 * * 1", "--timezone", "UTC", "--misfire-grace", "60", "--timeout", "9", "--now"]
    try:
        result = CliRunner().invoke(main, ["serve-schedule", "--config", config, *options])
    finally:
        for number, handler in zip((signal.SIGTERM, signal.SIGINT), before, strict=True):
            signal.signal(number, handler)
    assert result.exit_code == 0, result.output
    (command, _), limits = made["FakeRunner"]
    assert command == [sys.executable, "-m", "daskw2v", "retrain", "--config", config]
    assert limits == {"timeout": 9.0}
    (_, trigger, _), others = made["FakeSchedule"]
    assert trigger.get_next_fire_time(None, datetime(2026, 11, 22, tzinfo=UTC)).weekday() == 0
    assert others == {"misfire_grace": 60, "now": True}
    assert not set(made["handlers"]) & set(before)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--cron", "0 3 * *"], "cron='0 3 * *' is not five fields"),
        (["--cron", "0 3 * * *", "--timezone", "Mars"], "timezone='Mars' is not in the IANA database"),
        (["--cron", "0 3 * * *", "--misfire-grace", "0"], "--misfire-grace"),
        (["--cron", "0 3 * * *", "--timeout", "0"], "--timeout"),
        (["--cron", "0 3 * * *", "--config", "absent.toml"], "absent.toml"),
        ([], "--cron"),
    ],
)
def test_command__refuses_before_it_serves(options, why, config):
    result = CliRunner().invoke(main, ["serve-schedule", "--config", config, *options])
    assert result.exit_code == 2
    assert why in result.output


def test_command__names_the_extra(config, monkeypatch):
    monkeypatch.setitem(sys.modules, "apscheduler.triggers.cron", None)
    result = CliRunner().invoke(main, ["serve-schedule", "--config", config, "--cron", "0 3 * * *"])
    assert result.exit_code == 2
    assert "pip install 'daskw2v[schedule]'" in result.output


def test_command__serves_until_it_is_told_to_end(config):
    """An empty file is no configuration: the run fails, and the schedule goes on."""
    command = [sys.executable, "-m", "daskw2v", "serve-schedule", "--config", config, "--cron", "0 3 * * *", "--now"]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) as serving:
        ended = next(line for line in serving.stderr if "has ended" in line)
        serving.send_signal(signal.SIGTERM)
        rest = serving.stderr.read()
    assert "failed (exit code 2). The next run: " in ended
    assert "SIGTERM: no other run starts." in rest
    assert serving.returncode == 0
