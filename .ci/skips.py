"""A plugin for pytest: CI runs each test in one of its environments, and a third of the slow ones each time.

`pytest -p skips --write-skipped FILE` writes a line for each test that was skipped. With `--read-skipped=FILE` these
have the marker `skipped_before`, and with `--no-skips` a skipped test fails the run. `--turn N` leaves out the slow
tests whose turn it is not: a function runs for one of three consecutive N.
"""

from __future__ import annotations

import zlib
from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("skips")
    group.addoption("--write-skipped", type=Path, metavar="FILE", help="write the names of skipped tests")
    group.addoption("--read-skipped", type=Path, metavar="FILE", help="give the tests of a file a marker")
    group.addoption("--turn", type=int, metavar="N", help="leave out two thirds of the slow tests, others for N + 1")
    group.addoption("--no-skips", action="store_true", help="fail if a test is skipped")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "skipped_before: the file of --read-skipped names it, or its module")
    if not hasattr(config, "workerinput"):  # under xdist the controller hears of all of them
        config.pluginmanager.register(_Skips(config))


@pytest.hookimpl(tryfirst=True)  # before pytest chooses by markers
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    file: Path | None = config.getoption("read_skipped")
    if file is not None:
        _mark_skipped(file, items)
    turn: int | None = config.getoption("turn")
    if turn is not None:
        later = [item for item in items if _waits(item, turn)]
        config.hook.pytest_deselected(items=later)
        waiting = set(later)
        items[:] = [item for item in items if item not in waiting]


def _waits(item: pytest.Item, turn: int) -> bool:
    """Tell whether a slow test runs another time: all cases of a function run together."""
    if item.get_closest_marker("slow") is None or item.get_closest_marker("skipped_before") is not None:
        return False
    return (zlib.crc32(item.nodeid.partition("[")[0].encode()) - turn) % 3 != 0


def _mark_skipped(file: Path, items: list[pytest.Item]) -> None:
    names = set(file.read_text(encoding="utf-8").splitlines())
    found = set()
    for item in items:
        if named := names.intersection(node.nodeid for node in item.listchain()):
            item.add_marker("skipped_before")
            found |= named
    if names - found:
        raise pytest.UsageError(f"{file} names what is no test: {', '.join(sorted(names - found))}")


class _Skips:
    def __init__(self, config: pytest.Config) -> None:
        self._file: Path | None = config.getoption("write_skipped")
        self._refused: bool = config.getoption("no_skips")
        self._reasons: dict[str, str] = {}

    def _note(self, report: pytest.CollectReport | pytest.TestReport) -> None:
        if report.skipped and not hasattr(report, "wasxfail"):
            self._reasons[report.nodeid] = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._note(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._note(report)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self._file is not None:
            self._file.write_text("".join(f"{name}\n" for name in sorted(self._reasons)), encoding="utf-8")
        if self._refused and self._reasons and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._refused and self._reasons:
            terminalreporter.section("skipped here too", red=True)
            for name, reason in sorted(self._reasons.items()):
                terminalreporter.line(f"{name}: {reason}")
