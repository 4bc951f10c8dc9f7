import json
import os
import sys
from contextlib import contextmanager
from dataclasses import fields
from types import SimpleNamespace

import click
import pytest
from click.testing import CliRunner

from daskw2v.cli import config_file, demo, estimating, evaluating, exporting, main, models, opening, program, training
from daskw2v.config.params import AUTO, Params
from daskw2v.config.resources import Resources
from daskw2v.corpus.formats import FORMATS
from daskw2v.corpus.pieces import ReadReport
from daskw2v.errors import InputError, ParameterError
from daskw2v.evaluation.results import Evaluation
from daskw2v.evaluation.similarity import SimilarityResult
from daskw2v.objectives.registry import OBJECTIVES
from daskw2v.phrases.score import SCORINGS
from daskw2v.progress import Progress
from daskw2v.training.averaging.merge import MERGE_RULES
from daskw2v.training.devices import DEVICES
from daskw2v.training.strategies import STRATEGIES


class FakeVectors:
    """Two words whose neighbours tell how they were asked."""

    opened = None
    vector_size = 3
    url = "w/models/v1"
    metadata = {  # noqa: RUF012
        "params": {"window": 4},
        "corpus": {"tokens": 4321, "report": ReadReport().as_dict()},
        "metrics": {"words_per_second": 12345, "seconds": 2.0, "loss": 1.5, "history": [{"words": 1}] * 9},
    }

    @classmethod
    def open(cls, url, storage_options=None, in_memory=None):
        cls.opened = (url, storage_options, in_memory)
        return cls()

    def __len__(self):
        return 2

    def __contains__(self, word):
        return word == "file"

    def most_similar(self, positive, negative=(), topn=10):
        return [("+".join(positive) + "".join(f"-{w}" for w in negative), 0.5)] * topn

    def analogy(self, a, b, c, topn=10):
        return [(f"{a}:{b}={c}:", 0.25)] * topn


@pytest.fixture
def calls(monkeypatch):
    """Replace what trains and what is trained; return the arguments they were called with."""
    seen = {}

    def train(inputs, *, listener, **kwargs):
        seen["train"] = {"inputs": inputs, **kwargs}
        listener(Progress("cluster", 0, 0, "workers", message="dashboard at http://here"))
        listener(Progress("count", 1, 1, "blocks"))
        return FakeVectors()

    def evaluate(vectors, **given):
        seen["evaluate"] = {name: value for name, value in given.items() if value}
        return Evaluation({"ws": SimilarityResult(0.5, 0.4, 0.6, 300, 53)}, {}, {}, {}, {})

    def write_report(vectors, url, **given):
        seen["report"] = {"url": url, **given}
        return url

    monkeypatch.setattr(training, "train", train)
    monkeypatch.setattr(exporting, "export", lambda _, *args, **own: seen.update(export=(*args, own)))
    for module in (training, evaluating):
        monkeypatch.setattr(module, "evaluate", evaluate)
        monkeypatch.setattr(module, "write_report", write_report)
    for module in (opening, evaluating):
        monkeypatch.setattr(module, "Vectors", FakeVectors)
    return seen


def run(*args, env=None):
    return CliRunner().invoke(main, list(args), env=env, prog_name="daskw2v")


def test_train__defaults_are_those_of_the_dataclasses(calls):
    result = run("train", "a.txt", "b.txt", "--work", "w")
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


def test_train__prefers_the_command_line_then_the_environment_then_the_file(calls, tmp_path):
    config = tmp_path / "c.toml"
    config.write_text("window = 2\nepochs = 2\nalpha = 0.02\nshrink_windows = false\n[storage_options]\nanon = true\n")
    env = {"DASKW2V_WINDOW": "3", "DASKW2V_EPOCHS": "3", "DASKW2V_CONFIG": str(config), "DASKW2V_WORK": "w"}
    result = run("train", "a", "--window", "4", "--memory-limit", "2 GiB", env=env)
    assert result.exit_code == 0, result.output
    assert calls["train"]["params"] == Params(window=4, epochs=3, alpha=0.02, shrink_windows=False)
    assert calls["train"]["resources"] == Resources(storage_options={"anon": True}, memory_limit="2 GiB")


@pytest.mark.parametrize(("name", "value"), [("workers", 1), ("memory_limit", "2 GiB")])
@pytest.mark.parametrize("place", ["command line", "environment", "file"])
def test_train__refuses_to_describe_a_local_cluster_beside_a_scheduler(calls, tmp_path, name, value, place):
    config = tmp_path / "c.toml"
    config.write_text(f"{name} = {value!r}\n" if place == "file" else "")
    options_given = (f"--{name.replace('_', '-')}", str(value)) if place == "command line" else ()
    env = {f"DASKW2V_{name.upper()}": str(value)} if place == "environment" else {}
    args = ("train", "a", "--work", "w", "--config", str(config), *options_given)
    result = run(*args, "--scheduler", "tcp://here:1", env=env)
    assert result.exit_code == 2
    assert result.stderr.startswith(
        f"Error: {name}={value!r} would be ignored: the cluster of scheduler='tcp://here:1'"
    )
    assert len(result.stderr.splitlines()) == 1
    assert run(*args, env=env).exit_code == 0


def test_train__tells_what_was_repaired_and_what_is_missing(calls, monkeypatch):
    report = ReadReport(replaced=1200, skipped=1, cut=2, first_offence="[a].txt at byte 7: invalid start byte")
    changes = {
        "corpus": {"tokens": 4321, "report": report.as_dict()},
        "vocabulary": {"total": 1234, "missing": 3, "missing_words": ["x", "y"]},
        "metrics": {**FakeVectors.metadata["metrics"], "loss": None},
    }
    monkeypatch.setattr(FakeVectors, "metadata", {**FakeVectors.metadata, **changes})
    result = run("train", "a", "--work", "w")
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
        assert run("train", "a", "--work", "w", "--tokenizer", tokenizer).exit_code == 0
    assert path.count(os.getcwd()) == added
    assert not added or path[-1] == os.getcwd()


def test_train__tells_the_speed_without_compiling_of_kernels(calls, monkeypatch):
    metrics = {**FakeVectors.metadata["metrics"], "seconds": 14.0, "compiling_seconds": 12.0}
    monkeypatch.setattr(FakeVectors, "metadata", {**FakeVectors.metadata, "metrics": metrics})
    result = run("train", "a", "--work", "w")
    assert "12,345 words/s in 2.0 s, after compiling kernels for 12.0 s" in result.stdout


def test_train__tells_why_it_stopped_and_the_loss_on_held_out_text(calls, monkeypatch):
    told = {
        "held_out": {"tokens": 4000, "measured": 4000, "loss": 2.25},
        "stopped": {"round": 3, "epochs": 2, "progress": 80, "of": 200, "reason": "held_out_loss was 2.3"},
    }
    monkeypatch.setattr(FakeVectors, "metadata", {**FakeVectors.metadata, **told})
    options = ("--held-out", ".01", "--monitor", "held_out_loss", "--patience", "3", "--tensorboard", "runs")
    rows = dict(line.split("  ", 1) for line in run("train", "a", "--work", "w", *options).stdout.splitlines())
    assert rows["held out"].strip() == "4,000 tokens, loss there 2.2500"
    assert rows["stopped"].strip() == "after 2 epochs: held_out_loss was 2.3"
    params, resources = calls["train"]["params"], calls["train"]["resources"]
    assert (params.held_out, params.monitor, params.patience) == (0.01, "held_out_loss", 3)
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
def test_train__answers_names_of_others_by_its_own(calls, given, remedy):
    result = run("train", "a", "--work", "w", *given)
    assert result.exit_code == 2
    assert remedy in " ".join(result.stderr.split())


def test_config__answers_names_of_others_by_its_own(tmp_path):
    config = tmp_path / "c.toml"
    config.write_text("size = 3\n")
    with pytest.raises(
        ParameterError, match=r"sets size, which is not a parameter\. The names .*For size: Give vector_size"
    ):
        config_file.read_config(config)


def test_train__groups_its_options_and_lists_their_choices(calls):
    lines = run("train", "--help").output.splitlines()
    headings = [line for line in lines if line.endswith(":") and not line.startswith(" ")]
    assert headings == [
        "Options:", "Input:", "Vocabulary:", "Model:", "Training:", "Cluster:", "Faults:",
        "Options that only these read (--help-for NAME explains them):",
    ]  # fmt: skip
    text = " ".join(run("train", "--help-for", "all").output.split())
    for name, registry in (
        ("format", FORMATS),
        ("strategy", (AUTO, *STRATEGIES)),
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
    brief = " ".join(run(command, "--help").output.split())
    assert (
        "sgns --prefix-sizes, --negative, --market-negative, --negative-sharing, --ns-exponent, --maxn, --features, "
        "--negative-rule cbow_ns"
    ) in brief
    assert "--rounds-per-epoch, --merges-per-round, --frequent-rows, --merge, --warmup, --hot-rows" in brief
    assert "Negative samples of each pair." not in brief
    assert "INPUT..." not in brief.partition("Options:")[2]
    for name, shown, hidden in (
        ("sgns", {"negative", "negative_sharing", "ns_exponent"}, {"cbow_mean", "window"}),
        ("rotation", {"n_partitions", "pair_epochs", "max_in_flight"}, {"n_replicas", "epochs"}),
        ("cuda", {"hot_rows", "max_in_flight"}, {"flush_words", "device"}),
        ("phrases", {"phrase_min_count", "phrase_delimiter"}, {"phrases", "min_count"}),
        ("tsv", {"delimiter"}, {"column", "phrase_delimiter"}),
        ("all", {"negative", "phrase_scoring", "window", "store_timeout"}, set()),
    ):
        found = run(command, "--help-for", name)
        assert found.exit_code == 0
        words = found.output.split()
        assert all(f"--{field.replace('_', '-')}" in words for field in shown)
        assert not any(f"--{field.replace('_', '-')}" in words for field in hidden)


def test_help_for__tells_of_what_reads_no_more_than_all_do(calls):
    assert run("train", "--help-for", "text").output == "text reads the options of --help, and no others.\n"
    refused = run("train", "--help-for", "abacus")
    assert refused.exit_code == 2
    assert "'sgns'" in refused.output
    assert not calls


def test_train__reads_flags_and_storage_options(calls):
    pairs = ("--storage-option", "anon=true", "--storage-option", "key=a=b")
    assert run("train", "a", "--work", "w", "--no-shrink-windows", *pairs).exit_code == 0
    assert calls["train"]["params"].shrink_windows is False
    assert calls["train"]["resources"].storage_options == {"anon": True, "key": "a=b"}


def test_train__refuses_a_storage_option_without_value(calls):
    result = run("train", "a", "--work", "w", "--storage-option", "anon")
    assert result.exit_code == 2
    assert "it is not KEY=VALUE." in result.stderr


def test_train__shows_every_field_and_default_in_its_help(calls):
    text = " ".join(run("train", "--help-for", "all").output.split())
    for name in config_file._names(Params) + config_file._names(Resources):
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
    result = run("train", "a", "--work", "w", "--config", str(config))
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: epochs=")


@pytest.mark.parametrize(("text", "problem"), [("windows = 3", "sets windows"), ("window =", "is not TOML")])
def test_read_config__refuses_unknown_names_and_what_is_not_toml(tmp_path, text, problem):
    config = tmp_path / "c.toml"
    config.write_text(text)
    with pytest.raises(ParameterError, match=problem):
        config_file.read_config(config)


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    with path.open("wb") as file:
        file.truncate(59_000_000)  # a hole: only its size counts
    return str(path)


def test_estimate__tells_what_each_stage_takes_and_what_was_guessed(text):
    result = run("estimate", text, "--workers", "2", "--threads", "1", "--memory-limit", "2 GiB")
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    names = ("stage", "encode, a worker", "vocabulary, a worker", "train, a worker", "publish, a worker", "client")
    assert [line.startswith(name) for line, name in zip(lines, names, strict=False)] == [True] * len(names)
    assert lines[6] == "10,000,000 words, by the files' sizes"
    assert "distinct words and " in lines[7]
    assert "estimated by Heaps' law" in lines[7]
    assert lines[8].endswith("fits into the memory_limit of 2 workers of 1 thread, 2.00 GiB each")


def test_estimate__takes_what_is_known_and_says_what_does_not_fit(text):
    known = ("--types", "9000000", "--words", "8000000", "--threads", "1", "--memory-limit", "2 GiB")
    result = run("estimate", text, *known, "--vector-size", "300", "--strategy", "averaging")
    assert result.exit_code == 0, result.output
    assert "guessed" not in result.output
    assert "model 17.88 GiB" in result.output  # 2 * 4 * 300 * 8 million
    assert "does not fit into the memory_limit of 1 worker of 1 thread," in result.output
    rotated = run("estimate", text, *known, "--strategy", "rotation", "--n-partitions", "64")
    assert "its partitions go through the work directory" in rotated.output


def test_estimate__of_a_gpu_tells_its_memory(text):
    result = run("estimate", text, "--device", "cuda", "--memory-limit", "8 GiB")
    assert "train, a GPU" in result.output


def test_estimate__asks_the_workers_of_a_scheduler(text, client, monkeypatch):
    @contextmanager
    def connect(resources, *_):
        assert resources.scheduler == "tcp://there:1"
        yield client

    monkeypatch.setattr(estimating, "connect", connect)
    result = run("estimate", text, "--scheduler", "tcp://there:1")
    assert result.exit_code == 0, result.output
    assert "of 1 worker of 2 threads" in result.output


def test_estimate__refuses_what_train_would(text):
    assert "window" in run("estimate", text, "--window", "0").output
    assert run("estimate", text, "--objective", "cbow_hs", "--strategy", "rotation").exit_code == 2
    assert "matches no file" in run("estimate", f"{text}.gone").stderr


def test_error__is_one_line_unless_debug_is_asked_for(calls, monkeypatch):
    def fail(*_, **__):
        raise InputError("No file matches a.", "Check the path.")

    monkeypatch.setattr(training, "train", fail)
    result = run("train", "a", "--work", "w")
    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1] == "Error: No file matches a. Check the path."
    assert "Traceback" not in result.stderr
    result = run("train", "a", "--work", "w", "--debug")
    assert result.exit_code == 2
    assert "Traceback" in result.stderr


def test_error__of_the_system_is_one_line_too(calls, monkeypatch):
    def fail(*_, **__):
        raise PermissionError(13, "Permission denied", "w")

    monkeypatch.setattr(training, "train", fail)
    result = run("train", "a", "--work", "w")
    assert result.exit_code == 2
    assert "Error: [Errno 13] Permission denied: 'w'" in result.stderr


def test_broken_pipe__ends_quietly(calls, monkeypatch):
    def fail(*_, **__):
        raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.setattr(models, "print_neighbours", fail)
    result = run("similar", "m", "king")
    assert result.exit_code == 1
    assert result.output == ""


def test_interrupt__leaves_with_130_and_says_how_to_go_on(calls, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(training, "train", stop)
    result = run("train", "a", "--work", "w")
    assert result.exit_code == 130
    assert "goes on where it stopped" in result.stderr


def test_similar__passes_words_and_options(calls):
    result = run("similar", "m", "king", "girl", "--negative", "boy", "--topn", "2", "--storage-option", "a=1")
    assert result.stdout.split() == ["word", "cosine", *["king+girl-boy", "0.5000"] * 2]
    assert FakeVectors.opened == ("m", {"a": 1}, False)


def test_analogy__asks_for_the_fourth_word(calls):
    assert "man:king=woman:" in run("analogy", "m", "man", "king", "woman", "--topn", "1").stdout


FILES = ("--similarity", "a.tsv", "b.tsv", "--analogy", "c.txt", "--similarity", "d.tsv")


def test_evaluate__takes_several_files_for_each_option(calls):
    texts = ("--classification", "e.tsv")
    result = run("evaluate", "m", *FILES, *texts, "--method", "lrcos", "--restrict-vocab", "9", "--cnn", "--json")
    assert calls["evaluate"] == {
        "similarity": ("a.tsv", "b.tsv", "d.tsv"),
        "analogy": ("c.txt",),
        "classification": ("e.tsv",),
        "analogy_methods": ("lrcos",),
        "classification_methods": ("logistic", "cnn"),
        "restrict_vocab": 9,
    }
    assert json.loads(result.stdout) == {
        "similarity": {"ws": {"spearman": 0.5, "low": 0.4, "high": 0.6, "pairs": 300, "missing": 53}}
    }


def test_evaluate__prints_a_table_for_people_and_for_documents(calls):
    heads, row = (line.split() for line in run("evaluate", *FILES, "--", "m").stdout.splitlines())
    assert heads == ["kind", "set", "measure", "score", "interval", "asked", "known"]
    assert row == ["similarity", "ws", "spearman", "0.500", "0.400..0.600", "300", "85.0%"]
    assert run("evaluate", "m", *FILES, "--markdown").stdout.splitlines() == [
        "| kind | set | measure | score | interval | asked | known |",
        "| --- | --- | --- | --- | --- | --- | --- |",
        "| similarity | ws | spearman | 0.500 | 0.400..0.600 | 300 | 85.0% |",
    ]


def test_evaluate__refuses_to_measure_nothing(calls):
    result = run("evaluate", "m")
    assert result.exit_code == 2
    assert "Nothing to evaluate" in result.stderr


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("evaluate", "m", "--similarity", "a", "--json", "--markdown"), "--json and --markdown cannot both"),
        (("evaluate", "m", "--similarity", "a", "--cnn"), "--cnn classifies texts"),
        (("evaluate", "m", "--similarity", "a", "--restrict-vocab", "9"), "--restrict-vocab is for analogies"),
        (("compare", "m", "n", "--html", "x.html", "--json"), "--json and --html cannot be combined"),
    ],
)
def test_evaluating__refuses_options_that_would_be_ignored(calls, args, message):
    result = run(*args)
    assert result.exit_code == 2
    assert message in result.stderr


def test_report__evaluates_and_writes_beside_another_model(calls):
    assert run("report", "m", "out.html", *FILES, "--other", "n", "--word", "king", "queen").stdout == "out.html\n"
    report = calls["report"]
    assert (report["url"], report["words"], report["map_method"]) == ("out.html", ["king", "queen"], "graph")
    assert report["evaluation"] == report["other_evaluation"]
    assert calls["evaluate"] == {"similarity": ("a.tsv", "b.tsv", "d.tsv"), "analogy": ("c.txt",)}
    assert run("report", "m", "out.html").exit_code == 0
    assert calls["report"]["other"] is calls["report"]["other_evaluation"] is calls["report"]["words"] is None


def test_train__writes_a_report_with_the_sets_of_the_training(calls):
    result = run("train", "a", "--work", "w", "--report", "r.html", "--eval-similarity", "a.tsv", "b.tsv")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[-1] == "r.html"
    assert calls["train"]["resources"].eval_similarity == (os.path.abspath("a.tsv"), os.path.abspath("b.tsv"))
    assert calls["evaluate"] == {"similarity": calls["train"]["resources"].eval_similarity}
    assert calls["report"]["url"] == "r.html"


def test_datasets__lists_what_there_is_and_fetches_what_is_named(monkeypatch):
    listed = run("datasets").stdout
    assert {"simlex999", "bats"} <= {line.split()[0] for line in listed.splitlines()}
    assert json.loads(run("datasets", "--json").stdout).keys() == {line.split()[0] for line in listed.splitlines()[1:]}
    monkeypatch.setattr(evaluating, "fetch", lambda name, folder: f"{folder}/{name}")
    assert run("datasets", "simlex999", "--folder", "sets").stdout == "sets/simlex999\n"


def test_export__writes_and_names_the_url(calls):
    assert run("export", "m", "v.bin", "--format", "text").stdout == "v.bin\n"
    assert calls["export"] == ("v.bin", "text", {}, {"sif": None, "part_size": None})


def test_info__tells_sizes_and_metadata_in_groups(calls, monkeypatch):
    sizes = {"words": 2, "vector_size": 3, "url": "w/models/v1"}
    assert json.loads(run("info", "m", "--json").stdout) == {**sizes, **FakeVectors.metadata}
    stages = [{"stage": "encode", "seconds": 0.25}, {"stage": "train", "seconds": 2.0}]
    metrics = {**FakeVectors.metadata["metrics"], "stages": stages, "evaluations": []}
    params = {"tokenizer": "lower", "column": "text", "window": 4, "n_groups": None, "centered": True, "gone": 1}
    monkeypatch.setattr(FakeVectors, "metadata", {**FakeVectors.metadata, "params": params, "metrics": metrics})
    assert [line.rstrip() for line in run("info", "m").stdout.splitlines()] == [
        "model",
        "  url   w/models/v1",
        "  size  2 words x 3",
        "",
        "params",
        "  input   tokenizer lower, column text",
        "  model   window 4, centered yes",
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
    result = run("demo", "--work", str(tmp_path))
    assert result.exit_code == 0, result.output
    assert calls["train"]["inputs"] == [str(tmp_path / "text" / "strings.txt")]
    assert f"daskw2v similar {tmp_path} socket" in result.stdout


def test_main__lists_the_commands_with_the_first_sentence_of_their_help():
    context = click.Context(main)
    own = {name: main.get_command(context, name).get_short_help_str(limit=1000) for name in main.list_commands(context)}
    assert own == {name: command.help for name, command in program.COMMANDS.items()}
    assert own.keys() == main.commands.keys()
