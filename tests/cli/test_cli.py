import json

import click
from click.testing import CliRunner

from daskw2v.cli import demo, main, options, printing, program, training
from daskw2v.errors import InputError
from daskw2v.evaluation import datasets
from tests.cli.fakes import FakeVectors
from tests.support.command_line import invoke


def test_error__is_one_line_unless_debug_is_asked_for(calls, monkeypatch):
    def fail(*_, **__):
        raise InputError("No file matches a.", "Check the path.")

    monkeypatch.setattr(training, "train", fail)
    result = invoke("train", "a", "--work", "w")
    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1] == "Error: No file matches a. Check the path."
    assert "Traceback" not in result.stderr
    result = invoke("train", "a", "--work", "w", "--debug")
    assert result.exit_code == 2
    assert "Traceback" in result.stderr


def test_error__of_what_explains_options_has_a_traceback_if_debug_is_asked_for():
    """Both options act before the others are read, in the order of the command line."""

    def fail(name):
        raise InputError(f"No plug-in {name}.", "Install it.")

    command = options.help_for_option(["rotation"], fail)(click.command("broken", cls=options.Command)(lambda: None))
    group = program.Program(commands={"broken": command})
    words = ["broken", "--help-for", "rotation"]
    assert CliRunner().invoke(group, words).stderr == "Error: No plug-in rotation. Install it.\n"
    assert "Traceback" in CliRunner().invoke(group, [words[0], "--debug", *words[1:]]).stderr


def test_error__of_the_system_is_one_line_too(calls, monkeypatch):
    def fail(*_, **__):
        raise PermissionError(13, "Permission denied", "w")

    monkeypatch.setattr(training, "train", fail)
    result = invoke("train", "a", "--work", "w")
    assert result.exit_code == 2
    assert "Error: [Errno 13] Permission denied: 'w'" in result.stderr


def test_broken_pipe__ends_quietly(calls, monkeypatch):
    def fail(*_, **__):
        raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.setattr(printing, "print_table", fail)
    result = invoke("similar", "m", "king")
    assert result.exit_code == 1
    assert result.output == ""


def test_interrupt__leaves_with_130_and_says_how_to_go_on(calls, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(training, "train", stop)
    result = invoke("train", "a", "--work", "w")
    assert result.exit_code == 130
    assert "goes on where it stopped" in result.stderr


def test_datasets__lists_all_sets_and_downloads_named_ones(monkeypatch):
    listed = invoke("datasets").stdout
    assert {"simlex999", "bats"} <= {line.split()[0] for line in listed.splitlines()}
    assert json.loads(invoke("datasets", "--json").stdout).keys() == {
        line.split()[0] for line in listed.splitlines()[1:]
    }
    monkeypatch.setattr(datasets, "fetch", lambda dataset, store: f"{store.name}/{dataset.name}")
    assert invoke("datasets", "simlex999", "--folder", "sets").stdout == "sets/simlex999\n"


def test_export__writes_and_names_the_url(calls):
    assert invoke("export", "m", "v.bin", "--format", "text").stdout == "v.bin\n"
    assert calls["export"] == ("v.bin", "text", {}, {"sif": None, "part_size": None})


def test_import__writes_a_model_that_other_commands_ask(tmp_path):
    (tmp_path / "v.txt").write_text("3 2\nking 3 1\nqueen 2 2\napple -1 1\n")
    model = str(tmp_path / "model")
    assert invoke("import", tmp_path / "v.txt", model).stdout == f"{model}\n"
    assert invoke("similar", model, "king", "--topn", "1").stdout.split() == ["word", "cosine", "queen", "0.8944"]
    assert invoke("export", model, tmp_path / "v.bin").exit_code == 0
    again = invoke("import", tmp_path / "v.bin", tmp_path / "again", "--format", "binary", "--json")
    assert json.loads(again.stdout) == {"url": str(tmp_path / "again")}
    refused = invoke("import", tmp_path / "v.bin", model)
    assert refused.exit_code == 2
    assert "There is something at" in refused.stderr


def test_info__shows_sizes_and_metadata_in_groups(calls, monkeypatch):
    sizes = {"words": 2, "vector_size": 3, "url": "w/models/v1"}
    assert json.loads(invoke("info", "m", "--json").stdout) == {**sizes, **FakeVectors.metadata}
    stages = [{"stage": "encode", "seconds": 0.25}, {"stage": "train", "seconds": 2.0}]
    metrics = {**FakeVectors.metadata["metrics"], "stages": stages, "evaluations": []}
    params = {"tokenizer": "lower", "column": "text", "window": 4, "n_groups": None, "cbow_mean": True, "gone": 1}
    monkeypatch.setattr(FakeVectors, "metadata", {**FakeVectors.metadata, "params": params, "metrics": metrics})
    assert [line.rstrip() for line in invoke("info", "m").stdout.splitlines()] == [
        "model",
        "  url   w/models/v1",
        "  size  2 words x 3",
        "",
        "params",
        "  input   tokenizer lower, column text",
        "  model   window 4, cbow_mean yes",
        "  others  gone 1",
        "",
        "text",
        "  tokens             4,321",
        "  report bytes read  0",
        "  report lines       0",
        "  report replaced    0",
        "  report skipped     0",
        "  report cut         0",
        "",
        "training",
        "  words per second  12,345",
        "  seconds           2",
        "  loss              1.5",
        "  history           9 entries (shown by --json)",
        "  stages            stage encode, seconds 0.25",
        "                    stage train, seconds 2",
    ]


def test_demo__writes_text_trains_and_shows_neighbours(calls, monkeypatch, tmp_path):
    monkeypatch.setattr("shutil.which", lambda name: f"/bin/{name}")
    monkeypatch.setattr(demo, "write_text", lambda folder: [folder / "strings.txt"])
    result = invoke("demo", "--work", str(tmp_path))
    assert result.exit_code == 0, result.output
    assert calls["train"]["inputs"] == [str(tmp_path / "text" / "strings.txt")]
    assert f"daskw2v similar {tmp_path} socket" in result.stdout
    shown = json.loads(invoke("demo", "--work", str(tmp_path), "--json").stdout)
    assert (shown["words"], shown["neighbours"]) == (2, {"file": [{"word": "file", "cosine": 0.5}] * 6})


def test_main__lists_the_commands_with_the_first_sentence_of_their_help():
    context = click.Context(main)
    own = {name: main.get_command(context, name).get_short_help_str(limit=1000) for name in main.list_commands(context)}
    assert own == {name: command.help for name, command in program.COMMANDS.items()}
    assert own.keys() == main.commands.keys()
