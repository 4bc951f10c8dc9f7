"""Every command that prints facts has `--json`, and prints one document.

A command that is new needs a line here, in `EXAMPLES` or in `WITHOUT`.
"""

import json

import click
import pytest

from daskw2v.cli import main
from daskw2v.evaluation.catalogue import DATASETS
from daskw2v.store.storage import Store
from tests.support.command_line import invoke
from tests.support.published import NEW, OLD, write_model

WITHOUT = {
    "train", "items", "walks", "demo", "warm-up",  # they tell what they did
    "versions tag",  # it prints nothing
}  # fmt: skip
SMALL = ("--vector-size", "4", "--min-count", "1", "--sample", "0", "--epochs", "1", "--threads", "1")

# Words of a command, and names of what its document has
EXAMPLES = {
    "retrain": [("text.txt --work fresh", *SMALL, {"outcome", "served"})],
    "estimate": [("text.txt", {"text", "workers", "trainings"})],
    "similar": [("work king queen --topn 3", {"neighbours"})],
    "analogy": [("work man king woman", {"neighbours"})],
    "export": [("work vectors.txt", {"url"})],
    "index": [("work --kind int8", {"recall"})],
    "info": [("work", {"words", "url"})],
    "versions list": [("work", {"versions"})],
    "versions show": [("work", {"name", "words"})],
    "versions publish": [(f"work {OLD}", {"served"})],
    "versions rollback": [("work", {"served"})],
    "versions diff": [(f"work {OLD}", {"entered", "left"})],
    "versions gc": [("work --keep 1 --min-age 0", {"deleted"})],
    "versions verify": [("work --all", {OLD, NEW})],
    "evaluate": [("work --similarity datasets/ws353.tsv", {"similarity"})],
    "compare": [("work last-week", {"sizes", "neighbours"})],
    "report": [("work page.html", {"url"})],
    "datasets": [("", {*DATASETS}), ("ws353", {"ws353"})],
}
CASES = [pytest.param(name, line, id=f"{name} {line[0]}".strip()) for name, lines in EXAMPLES.items() for line in lines]


def commands(group, *above):
    """Yield every command by its name, those of groups below it too."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands(command, *above, name)
        else:
            yield " ".join((*above, name)), command


def test_commands__that_print_facts_have_json():
    has = {name for name, command in commands(main) if any("--json" in option.opts for option in command.params)}
    assert has == {*EXAMPLES}
    assert {name for name, _ in commands(main)} - has == WITHOUT


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with two models, a text and an evaluation set."""
    monkeypatch.chdir(tmp_path)
    write_model(tmp_path / "work", OLD, NEW)
    write_model(tmp_path / "last-week", OLD)
    (tmp_path / "text.txt").write_text("one two three four\n" * 50)
    sets = Store(str(tmp_path / "datasets"))
    sets.write_bytes("ws353.tsv", b"king\tqueen\t9\nman\twoman\t8\nking\twoman\t3\nqueen\tman\t2\n")
    sets.write_manifest({"url": DATASETS["ws353"].url}, "ws353.json")
    return tmp_path


def no_json(constant):
    raise AssertionError(f"{constant} is no JSON")


@pytest.mark.parametrize(("name", "line"), CASES)
def test_json__is_one_document(here, name, line):
    words, *options, keys = line
    result = invoke(*name.split(), *words.split(), *options, "--json")
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout, parse_constant=no_json)
    assert isinstance(document, dict)
    assert keys <= document.keys()
