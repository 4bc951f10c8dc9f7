"""What commands print, where a pipe or a mail reads it."""

from daskw2v.cli.printing import print_table


def test_table__in_a_pipe_has_whole_lines_and_no_space_at_their_ends(capsys):
    long = "a word " * 60
    print_table(("name", "value"), [("short", "1"), ("longer name", long), ("[bold]", "")])
    head, *lines = capsys.readouterr().out.splitlines()
    assert head == "name         value"
    assert lines == ["short        1", f"longer name  {long.rstrip()}", "[bold]"]
