"""What commands print, where a pipe or a mail reads it."""

import click

from daskw2v.cli.printing import print_table


def test_table__in_a_pipe_has_unfolded_lines_and_no_space_at_their_ends(capsys):
    long = "a word " * 60
    print_table(("name", "value"), [("short", "1"), ("longer name", long), ("[bold]", "")])
    head, *lines = capsys.readouterr().out.splitlines()
    assert head == "name         value"
    assert lines == ["short        1", f"longer name  {long.rstrip()}", "[bold]"]


def test_table__in_a_narrow_terminal_folds_its_widest_column(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    print_table(("name", "value"), [("first", "a word " * 9), ("漢字", "1")])
    assert click.unstyle(capsys.readouterr().out).splitlines() == [
        "name   value",
        "first  a word a word a word a word a",
        "       word a word a word a word a word",
        "漢字   1",
    ]


def test_table__in_a_terminal_has_a_bold_head_and_no_other_style(monkeypatch):
    printed = []
    monkeypatch.setattr(click, "echo", printed.append)
    print_table(("name", "value"), [("first", "1")])
    assert printed == ["\x1b[1mname   value\x1b[0m", "first  1"]
