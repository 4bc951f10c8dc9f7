import json
import os
import sys
from dataclasses import fields
from types import SimpleNamespace

import pytest

from daskw2v.cli import config_file
from daskw2v.collections.kinds import FILES, KINDS
from daskw2v.config.choice import find_unread_fields, known_fields
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.corpus.formats import FORMATS
from daskw2v.corpus.pieces import ReadReport
from daskw2v.errors import ParameterError
from daskw2v.objectives.registry import OBJECTIVES
from daskw2v.phrases.score import SCORINGS
from daskw2v.training.averaging.merge import MERGE_RULES
from daskw2v.training.devices import DEVICES
from daskw2v.training.strategies import STRATEGIES
from daskw2v.training.watch.stopping_settings import EarlyStopping
from tests.cli.fakes import FakeVectors
from tests.support.command_line import invoke


def test_train__defaults_are_those_of_the_dataclasses(calls):
    result = invoke("train", "a.txt", "b.txt", "--work", "w")
    assert result.exit_code == 0, result.output
    train = calls["train"]
    assert (train["inputs"], train["work"]) == (["a.txt", "b.txt"], "w")
    assert (train["params"], train["resources"]) == (Params(), Resources())
    assert result.stderr.splitlines() == ["cluster: dashboard at http://here", "count: 1/1 blocks"]
    rows = [line.split(maxsplit=1) for line in result.stdout.splitlines()]
    assert [(name, value.rstrip()) for name, value in rows] == [
        ("model", "w/models/v1"),
        ("text", "4,321 tokens"),
        ("size", "2 words x 3"),
        ("speed", "12,345 words/s in 2.0 s"),
        ("loss", "1.5000"),
    ]


def test_train__prints_the_same_facts_as_json(calls, monkeypatch):
    facts = {
        "vocabulary": {"total": 1234},
        "phrases": [{"n_phrases": 7, "delimiter": "_"}, {"n_phrases": 2, "delimiter": "_"}],
        "choice": {"strategy": "rotation", "why": "it is fastest"},
        "held_out": {"tokens": 4000, "measured": 4000, "loss": 2.25},
        "metrics": {**FakeVectors.metadata["metrics"], "seconds": 14.0, "compiling_seconds": 12.0, "loss": None},
    }
    monkeypatch.setattr(FakeVectors, "metadata", {**FakeVectors.metadata, **facts})
    result = invoke("train", "a", "--work", "w", "--report", "page.html", "--json")
    assert result.exit_code == 0, result.output
    assert result.stderr.splitlines() == ["cluster: dashboard at http://here", "count: 1/1 blocks"]
    assert json.loads(result.stdout) == {
        "url": "w/models/v1",
        "words": 2,
        "vector_size": 3,
        "tokens": 4321,
        "known_tokens": 1234,
        "phrases": [7, 2],
        "words_per_second": 12345,
        "seconds": 2.0,
        "compiling_seconds": 12.0,
        "loss": None,
        "choice": {"strategy": "rotation", "why": "it is fastest"},
        "held_out": {"tokens": 4000, "measured": 4000, "loss": 2.25},
        "stopped": None,
        "report": "page.html",
    }


def test_train__prefers_the_command_line_then_the_environment_then_the_file(calls, tmp_path):
    config = tmp_path / "c.toml"
    config.write_text("window = 2\nepochs = 2\nalpha = 0.02\nshrink_windows = false\n[storage_options]\nanon = true\n")
    env = {"DASKW2V_WINDOW": "3", "DASKW2V_EPOCHS": "3", "DASKW2V_CONFIG": str(config), "DASKW2V_WORK": "w"}
    result = invoke("train", "a", "--window", "4", "--memory-limit", "2 GiB", env=env)
    assert result.exit_code == 0, result.output
    assert calls["train"]["params"] == Params(window=4, epochs=3, alpha=0.02, shrink_windows=False)
    assert calls["train"]["resources"] == Resources(storage_options={"anon": True}, memory_limit="2 GiB")


@pytest.mark.parametrize(("name", "value"), [("workers", 1), ("memory_limit", "2 GiB")])
@pytest.mark.parametrize("source", ["command line", "environment", "file"])
def test_train__refuses_to_describe_a_local_cluster_beside_a_scheduler(calls, tmp_path, name, value, source):
    config = tmp_path / "c.toml"
    config.write_text(f"{name} = {value!r}\n" if source == "file" else "")
    options_given = (f"--{name.replace('_', '-')}", str(value)) if source == "command line" else ()
    env = {f"DASKW2V_{name.upper()}": str(value)} if source == "environment" else {}
    args = ("train", "a", "--work", "w", "--config", str(config), *options_given)
    result = invoke(*args, "--scheduler", "tcp://here:1", env=env)
    assert result.exit_code == 2
    assert result.stderr.startswith(
        f"Error: {name}={value!r} would be ignored: the cluster of scheduler='tcp://here:1'"
    )
    assert len(result.stderr.splitlines()) == 1
    assert invoke(*args, env=env).exit_code == 0


def test_train__reports_repairs_and_missing_words(calls, monkeypatch):
    report = ReadReport(replaced=1200, skipped=1, cut=2, first_offence="[a].txt at byte 7: invalid start byte")
    changes = {
        "corpus": {"tokens": 4321, "report": report.as_dict()},
        "vocabulary": {"total": 1234, "missing": 3, "missing_words": ["x", "y"]},
        "metrics": {**FakeVectors.metadata["metrics"], "loss": None},
    }
    monkeypatch.setattr(FakeVectors, "metadata", {**FakeVectors.metadata, **changes})
    result = invoke("train", "a", "--work", "w")
    assert result.exit_code == 0, result.output
    assert result.stderr.splitlines()[2:] == [
        "Note: 1,200 lines had invalid Unicode, which was replaced by U+FFFD.",
        "Note: 1 line could not be read and was left out.",
        "Note: The first of them: [a].txt at byte 7: invalid start byte.",
        "Note: Lines longer than 4 MiB were cut at whitespace, 2 times.",
        "Note: 3 words of the given vocabulary did not occur in the text, such as x, y.",
    ]
    rows = dict(line.split(maxsplit=1) for line in result.stdout.splitlines())
    assert rows["text"].rstrip() == "4,321 tokens, 1,234 of them in the vocabulary"
    assert rows["loss"].rstrip() == "none: no pair of words was left"


@pytest.mark.parametrize(
    ("safe_path", "tokenizer", "added"),
    [(False, "mine:cut", 1), (True, "mine:cut", 0), (False, "lower", 0), (False, "regex:a:b", 0)],
)
def test_train__imports_a_tokenizer_from_the_current_directory_last(
    calls, monkeypatch, tmp_path, safe_path, tokenizer, added
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", path := list(sys.path))
    monkeypatch.setattr(sys, "flags", SimpleNamespace(safe_path=safe_path))
    for _ in range(2):
        assert invoke("train", "a", "--work", "w", "--tokenizer", tokenizer).exit_code == 0
    assert path.count(os.getcwd()) == added
    assert not added or path[-1] == os.getcwd()


def test_train__shows_the_speed_without_compilation(calls, monkeypatch):
    metrics = {**FakeVectors.metadata["metrics"], "seconds": 14.0, "compiling_seconds": 12.0}
    monkeypatch.setattr(FakeVectors, "metadata", {**FakeVectors.metadata, "metrics": metrics})
    result = invoke("train", "a", "--work", "w")
    assert "12,345 words/s in 2.0 s, after compiling kernels for 12.0 s" in result.stdout


def test_train__shows_why_it_stopped_and_the_loss_on_held_out_text(calls, monkeypatch):
    facts = {
        "held_out": {"tokens": 4000, "measured": 4000, "loss": 2.25},
        "stopped": {"round": 3, "epochs": 2, "progress": 80, "of": 200, "reason": "held_out_loss was 2.3"},
    }
    monkeypatch.setattr(FakeVectors, "metadata", {**FakeVectors.metadata, **facts})
    options = ("--held-out", ".01", "--monitor", "held_out_loss", "--patience", "3", "--tensorboard", "runs")
    rows = dict(line.split("  ", 1) for line in invoke("train", "a", "--work", "w", *options).stdout.splitlines())
    assert rows["held out"].strip() == "4,000 tokens, loss there 2.2500"
    assert rows["stopped"].strip() == "after 2 epochs: held_out_loss was 2.3"
    params, resources = calls["train"]["params"], calls["train"]["resources"]
    assert (params.held_out, params.early_stopping) == (0.01, EarlyStopping("held_out_loss", patience=3))
    assert resources.tensorboard == os.path.abspath("runs")


@pytest.mark.parametrize(
    ("given", "remedy"),
    [
        (("--size", "100"), "No such option: --size. Give --vector-size."),
        (("-size", "100"), "No such option: -size. Give --vector-size."),
        (("--minCount=3",), "No such option: --minCount. Give --min-count."),
        (("-cbow", "1"), "No such option: -cbow. Give --objective (sgns and sg_hs are skip-gram"),
        (("-window", "5"), "No such option: -window. Give --window."),
        (("--vector-sise", "5"), "No such option: --vector-sise. Give --vector-size."),
    ],
)
def test_train__answers_names_of_other_libraries_by_parameters(calls, given, remedy):
    result = invoke("train", "a", "--work", "w", *given)
    assert result.exit_code == 2
    assert remedy in " ".join(result.stderr.split())


def test_config__answers_names_of_other_libraries_by_parameters(tmp_path):
    config = tmp_path / "c.toml"
    config.write_text("size = 3\n")
    with pytest.raises(
        ParameterError, match=r"sets size, which is not a parameter\. The names .*For size: Give vector_size"
    ):
        config_file.read_config(config)


def test_train__groups_its_options_and_lists_their_choices(calls):
    lines = invoke("train", "--help").output.splitlines()
    headings = [line for line in lines if line.endswith(":") and not line.startswith(" ")]
    assert headings == [
        "Options:",
        "Input:",
        "Vocabulary:",
        "Model:",
        "Training:",
        "Cluster:",
        "Faults:",
        "Options that only these read (--help-for NAME explains them):",
    ]
    text = " ".join(invoke("train", "--help-for", "all").output.split())
    for name, registry in (
        ("format", FORMATS),
        ("strategy", ("auto", *STRATEGIES)),
        ("objective", OBJECTIVES),
        ("merge", MERGE_RULES),
        ("device", DEVICES),
    ):
        assert f"--{name} [{'|'.join(registry)}]" in text
    assert "--optimizer [sgd|adam]" in text
    for cls in (Params, Resources):
        for f in fields(cls):
            if f.metadata["choices"]:
                assert f"--{f.name.replace('_', '-')} [{'|'.join(f.metadata['choices'])}]" in text


@pytest.mark.parametrize("command", ["train", "retrain", "estimate"])
def test_help_for__explains_what_only_one_reads(calls, command):
    brief = " ".join(invoke(command, "--help").output.split())
    assert (
        "sgns --prefix-sizes, --negative, --ns-exponent, --negative-sharing, --market-negative, --markets, --maxn, "
        "--features, --frozen-words cbow_ns"
    ) in brief
    assert "--rounds-per-epoch, --merges-per-round, --frequent-rows, --merge, --hot-rows" in brief
    assert "Negative samples of each pair." not in brief
    assert "INPUT..." not in brief.partition("Options:")[2]
    for name, shown, hidden in (
        ("sgns", {"negative", "negative_sharing", "ns_exponent"}, {"cbow_mean", "window"}),
        ("rotation", {"n_partitions", "sent_dtype", "max_in_flight"}, {"n_replicas", "epochs"}),
        ("cuda", {"hot_rows", "max_in_flight"}, {"prefix_sizes", "device"}),
        ("phrases", {"phrase_min_count", "phrase_delimiter"}, {"phrases", "min_count"}),
        ("tsv", {"column", "delimiter"}, {"format", "phrase_delimiter"}),
        ("all", {"negative", "phrase_scoring", "window", "store_timeout"}, set()),
    ):
        found = invoke(command, "--help-for", name)
        assert found.exit_code == 0
        words = found.output.split()
        assert all(f"--{field.replace('_', '-')}" in words for field in shown)
        assert not any(f"--{field.replace('_', '-')}" in words for field in hidden)


def test_help_for__says_that_a_value_reads_no_further_options(calls):
    assert invoke("train", "--help-for", "text").output == "text reads the options of --help, and no others.\n"
    refused = invoke("train", "--help-for", "abacus")
    assert refused.exit_code == 2
    assert "'sgns'" in refused.output
    assert not calls


def test_train__reads_flags_and_storage_options(calls):
    pairs = ("--storage-option", "anon=true", "--storage-option", "key=a=b")
    assert invoke("train", "a", "--work", "w", "--no-shrink-windows", *pairs).exit_code == 0
    assert calls["train"]["params"].shrink_windows is False
    assert calls["train"]["resources"].storage_options == {"anon": True, "key": "a=b"}


def test_train__refuses_a_storage_option_without_value(calls):
    result = invoke("train", "a", "--work", "w", "--storage-option", "anon")
    assert result.exit_code == 2
    assert "it is not KEY=VALUE." in result.stderr


def test_train__shows_every_field_and_default_in_its_help(calls):
    text = " ".join(invoke("train", "--help-for", "all").output.split())
    unread = find_unread_fields(Resources, "input", KINDS[FILES])
    for name in {**known_fields(Params), **known_fields(Resources)}.keys() - {*unread}:
        assert f"--{name.removesuffix('s') if name == 'storage_options' else name}".replace("_", "-") in text
    assert "Dimensions of a vector. [default: 100]" in text
    for name, objective in OBJECTIVES.items():
        for optimizer, alpha in objective.alphas.items():
            assert f"{alpha:g} for {name}" + (f" with {optimizer}" if len(objective.alphas) > 1 else "") in text
    assert all(f"{scoring.threshold:g} for {name}" in text for name, scoring in SCORINGS.items())


@pytest.mark.parametrize("value", ["1.5", "true", '"five"', "0"])
def test_train__checks_values_of_the_file_like_any_other(calls, tmp_path, value):
    config = tmp_path / "c.toml"
    config.write_text(f"epochs = {value}\n")
    result = invoke("train", "a", "--work", "w", "--config", str(config))
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: epochs=")


@pytest.mark.parametrize(("text", "problem"), [("windows = 3", "sets windows"), ("window =", "is not TOML")])
def test_read_config__refuses_unknown_names_and_what_is_not_toml(tmp_path, text, problem):
    config = tmp_path / "c.toml"
    config.write_text(text)
    with pytest.raises(ParameterError, match=problem):
        config_file.read_config(config)
