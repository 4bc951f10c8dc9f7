"""What others wrote is printed as what it is, and commands no terminal."""

import json
import sys
import unicodedata
from itertools import pairwise

import numpy as np
import pytest
from rich.console import Console

from daskw2v.cli.printing import print_groups, print_json, print_lines, print_table
from daskw2v.cluster.console import show_progress
from daskw2v.errors import InputError, StoreError, UnknownWordError
from daskw2v.models.stored.store import write_vocabulary
from daskw2v.models.stored.tables import create_model, write_table_rows
from daskw2v.models.versions.versions import publish
from daskw2v.progress import Progress
from daskw2v.safe_text import escaped, escaped_json, escaped_lines
from daskw2v.store.storage import Store
from daskw2v.vocabulary.vocabulary import Vocabulary
from tests.support.command_line import invoke

TITLE = "a\x1b]0;title\x07"  # sets a window's title
NASTY = [TITLE, "b\x9b31m", "c\u202ecba", "d\0", "e\rf", "g\u2028h", "i\x7f"]
RAW = set("\x1b\x07\x9b\u202e\0\r\u2028\x7f")


def test_escaped__leaves_no_control_and_no_other_character():
    every = [chr(code) for code in range(sys.maxunicode + 1)]
    harmful = {c for c in every if unicodedata.category(c) in {"Cc", "Cs", "Zl", "Zp"}}
    harmful |= set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
    assert {c for c in every if escaped(c) != c} == harmful
    assert all(escaped(c).isascii() and escaped(c).isprintable() for c in harmful)


def test_lines__stay_lines():
    assert escaped_lines("a\n\tb\r\n") == "a\n\\tb\\r\n"


def test_json__keeps_its_values():
    values = {word: [word] for word in [*NASTY, "naïve", "\ud800"]}
    text = escaped_json(json.dumps(values, indent=1, ensure_ascii=False))
    assert json.loads(text) == values
    assert not RAW & {*text}
    assert "naïve" in text


@pytest.mark.parametrize(
    "show",
    [
        lambda: print_table(("word", NASTY[1]), [(word, word) for word in NASTY]),
        lambda: print_groups([(TITLE, [(word, word) for word in NASTY])]),
        lambda: print_json(dict.fromkeys(NASTY, NASTY)),
        lambda: print_lines("\n".join(NASTY)),
    ],
)
def test_printing__escapes(show, capsys):
    show()
    printed = capsys.readouterr().out
    assert not RAW & {*printed}
    assert "title" in printed


@pytest.mark.parametrize("error", [InputError, StoreError, UnknownWordError])
def test_message__of_an_error_escapes_what_it_quotes(error):
    raised = error(f"{TITLE} is unknown.\nSecond line.", "Give \x9b.")
    assert str(raised) == "a\\x1b]0;title\\x07 is unknown.\nSecond line. Give \\x9b."
    assert raised.problem.startswith(TITLE)


@pytest.mark.parametrize("terminal", [False, True])
def test_progress__escapes_messages(terminal, capsys):
    console = Console(stderr=True, highlight=False, force_terminal=terminal, width=200)
    with show_progress(console) as listener:
        listener(Progress("read", 0, 0, "files", message=f"{TITLE} was left out"))
        listener(Progress("read", 1, 2, "files", message="b\x9b31m"))
    printed = capsys.readouterr().err
    assert "a\\x1b]0;title\\x07 was left out" in printed
    assert "b\\x9b31m" in printed
    assert not {"\x07", "\x9b"} & {*printed}


@pytest.fixture
def work(tmp_path, monkeypatch):
    """A work directory whose model has words and metadata of a stranger."""
    monkeypatch.chdir(tmp_path)
    models = Store(str(tmp_path / "models"))
    rows = np.array([[1.0, i / 10] for i in range(len(NASTY))], np.float32)
    for version in ("v0001-a", "v0002-b"):
        store = models / version
        create_model(store, {"input": (len(NASTY), 2)}, 8)
        write_table_rows(store, "input", 0, rows)
        write_vocabulary(store, Vocabulary.from_words(NASTY, range(len(NASTY), 0, -1)))
        publish(models, version, {"params": {"tokenizer": TITLE}, "corpus": {TITLE: NASTY[:3]}, TITLE: "\u202e"})
    return tmp_path


@pytest.mark.parametrize(
    "line",
    [
        ["similar", "W", NASTY[1]],
        ["analogy", "W", *NASTY[1:4]],
        ["info", "W"],
        ["info", "W", "--json"],
        ["versions", "list", "W"],
        ["versions", "show", "W"],
        ["versions", "show", "W", "--json"],
        ["versions", "diff", "W", "v0001-a"],
        ["compare", "W/models/v0001-a", "W/models/v0002-b"],
        ["compare", "W/models/v0001-a", "W/models/v0002-b", "--json"],
        ["similar", "W", "\x1b[2Jnothing"],
        ["similar", "W", "\x1b[2Jnothing", "--debug"],
        ["info", "\x1b[2Jnowhere"],
        ["evaluate", "W", "--similarity", "set\x1b[2J.tsv"],
        ["evaluate", "W", "--similarity", "set\x1b[2J.tsv", "--markdown"],
    ],
    ids=lambda line: " ".join(map(escaped, line)),
)
def test_command__prints_no_control(work, line):
    (work / "set\x1b[2J.tsv").write_text("\n".join(f"{a}\t{b}\t{i}" for i, (a, b) in enumerate(pairwise(NASTY))))
    result = invoke(*(str(work) + word[1:] if word[:1] == "W" else word for word in line))
    assert result.exit_code in {0, 2}, result.output
    assert result.output
    assert not RAW & {*result.output}
