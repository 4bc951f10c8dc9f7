"""Every command that prints facts has `--json`, and prints one document.

A command that is new needs a line here, in `EXAMPLES` or in `WITHOUT`.
"""

import json
import sys

import click
import pytest

from daskw2v.cli import demo, main
from daskw2v.config.params import Params
from daskw2v.evaluation.datasets import DATASETS
from daskw2v.store.storage import Store
from daskw2v.training import warm_up
from tests.support.command_line import invoke
from tests.support.published import NEW, OLD, write_model

WITHOUT = {"versions tag", "versions release", "versions freeze", "versions unfreeze"}  # they print nothing
SMALL = ("--vector-size", "4", "--min-count", "1", "--sample", "0", "--epochs", "1", "--threads", "1")
TRAINED = {"url", "words", "vector_size", "tokens", "words_per_second", "seconds", "loss", "report"}

# Words of a command, and names of what its document has
EXAMPLES = {
    "train": [
        ("text.txt --work fresh", *SMALL, TRAINED),
        ("text.txt --work fresh --report page.html", *SMALL, TRAINED),
    ],
    "items": [("events.csv --work fresh", *SMALL, TRAINED)],
    "walks": [("edges.txt --work fresh --length 9", *SMALL, TRAINED)],
    "demo": [("--work fresh", TRAINED - {"report"} | {"neighbours"})],
    "warm-up": [("", {"folder", "compiled", "skipped", "seconds"})],
    "retrain": [("text.txt --work fresh", *SMALL, {"outcome", "served"})],
    "estimate": [("text.txt", {"text", "workers", "trainings"})],
    "similar": [("work king queen --topn 3", {"neighbours"})],
    "analogy": [("work man king woman", {"neighbours"})],
    "import": [("vectors.vec imported", {"url"})],
    "export": [("work vectors.txt", {"url"})],
    "index": [("work --kind int8", {"recall"})],
    "info": [("work", {"words", "url"})],
    "versions list": [("work", {"versions"})],
    "versions show": [("work", {"name", "words"})],
    "versions publish": [(f"work {OLD}", {"served"})],
    "versions promote": [(f"work {NEW}", {"served", "gates"})],
    "versions rollback": [("work", {"served"})],
    "versions log": [("work", {"states"})],
    "versions hold": [(f"work {OLD}", {"hold"})],
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
    """A folder with two models, a text, events, edges, vectors and an evaluation set; it is where kernels are kept."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(warm_up, "cache_folder", lambda: str(tmp_path))
    (tmp_path / f"warm-up-{sys.implementation.cache_tag}.txt").touch()  # or all kernels would be compiled, for minutes
    monkeypatch.setattr(demo, "write_text", lambda folder: [tmp_path / "text.txt"])
    monkeypatch.setattr(demo, "PARAMS", Params(vector_size=4, min_count=1, sample=0, epochs=1))
    write_model(tmp_path / "work", OLD, NEW)
    write_model(tmp_path / "last-week", OLD)
    (tmp_path / "text.txt").write_text("one two three file\n" * 50)
    (tmp_path / "events.csv").write_text("user,item,time\n" + "".join(f"{i // 6},i{i % 5},{i}\n" for i in range(60)))
    (tmp_path / "edges.txt").write_text("".join(f"{i} {(i + 1) % 9}\n" for i in range(9)))
    (tmp_path / "vectors.vec").write_text("2 3\nking 3 1 0\nqueen 2 2 0\n")
    sets = Store(str(tmp_path / "datasets"))
    sets.write_bytes("ws353.tsv", b"king\tqueen\t9\nman\twoman\t8\nking\twoman\t3\nqueen\tman\t2\n")
    sets.write_manifest({"url": DATASETS["ws353"].url}, "ws353.json")
    return tmp_path


def no_json(constant):
    raise AssertionError(f"{constant} is no JSON")


@pytest.mark.parametrize(("name", "line"), CASES)
def test_json__is_one_document(here, name, line):
    words, *options, keys = line
    if name == "items":
        pytest.importorskip("dask.dataframe", reason="events need daskw2v[events]")
    result = invoke(*name.split(), *words.split(), *options, "--json")
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout, parse_constant=no_json)
    assert isinstance(document, dict)
    assert keys <= document.keys()
