"""RESULTS.md, PAPERS.md and the figures of other pages are what the records say."""

import re
import subprocess
from importlib.util import find_spec

import pytest

results = pytest.importorskip("benchmarks.results", reason="no benchmarks here: run pytest as python -m pytest")
records = pytest.importorskip("benchmarks.records", reason="no benchmarks here")

HAS_HISTORY = (records.ROOT / ".git").exists()
TEXTS = {page: page.read_text(encoding="utf-8") for page in results.MARKED}


@pytest.mark.parametrize("page", TEXTS, ids=lambda page: page.relative_to(records.ROOT).as_posix())
def test_page__has_the_figures_of_the_records(page):
    assert results.with_figures(page, TEXTS[page]) == TEXTS[page]


@pytest.mark.parametrize(
    ("page", "figure"),
    [
        *(
            (results.README, figure)
            for figure in (r"\d+(?= times gensim)", r"\d+(?= s; gensim takes)", r"(?<=WordSim-353 )\.\d+", "365 of 365")
        ),
        *(
            (results.TRAINING, figure)
            for figure in (
                r"\d\.\d+(?= times as fast \|$)",
                r"\d\.\d+(?= times as fast \| )",
                r"\d+(?= % \|$)",
                r"\d\.\d+(?= times, with the same bits)",
                r"\.\d+(?= hours on 1)",
                r"\d+\.\d+(?=, \d+\.\d+, \d+\.\d+ \|)",
            )
        ),
    ],
)
def test_page__shows_a_figure_that_was_changed_by_hand(page, figure):
    changed = re.sub(figure, "42", TEXTS[page], count=1, flags=re.MULTILINE)
    assert changed != TEXTS[page]
    assert results.with_figures(page, changed) == TEXTS[page]


def is_in_history(commit):
    """Tell whether a clone has a commit: one that was amended is known here, and to nobody else."""
    words = ["git", "merge-base", "--is-ancestor", commit.rstrip("+"), "HEAD"]
    return subprocess.run(words, cwd=records.ROOT, capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize("page", [results.RESULTS, results.PAPERS], ids=lambda page: page.name)
def test_results__are_printed_from_the_records(page):
    text = page.read_text(encoding="utf-8")
    day, commit = results.PRINTED.search(text).groups()
    if not HAS_HISTORY:
        pytest.skip("no git history here, which tells what is older than its code")
    assert is_in_history(commit), f"{commit} is not in the history of HEAD: print {page.name} again"
    assert results.pages(day, commit)[page] == text
    assert len(text.splitlines()) <= 400


@pytest.mark.parametrize("name", records.names())
def test_record__has_figures_and_says_where_they_are_from(name):
    record = records.Record.read(name)
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", record.date)
    assert re.fullmatch(r"[0-9a-f]{7,40}\+?", record.commit)
    assert not HAS_HISTORY or is_in_history(record.commit)
    assert record.machine["instructions"]
    assert record.text
    assert record.code
    assert [place for place in record.code if not (records.ROOT / place).exists()] == []
    cells = [cell for table in record.tables for row in table["rows"].values() for cell in row]
    assert any(isinstance(cell, int | float | list) for cell in cells)
    for table in record.tables:
        assert {len(row) for row in table["rows"].values()} == {len(table["columns"])}


@pytest.mark.parametrize("name", records.names())
def test_record__says_where_its_command_is_gone(name):
    record = records.Record.read(name)
    modules = re.findall(r"python -m benchmarks\.(\w+)", record.command)
    gone = [module for module in modules if find_spec(f"benchmarks.{module}") is None]
    assert not gone or any("removed" in note or " now." in note for note in record.notes)


def test_changes__are_none_at_the_commit_itself():
    if not HAS_HISTORY:
        pytest.skip("no git history here")
    record = records.Record.read("train_speed")
    assert record.changes(record.commit.rstrip("+")) == 0
