"""A dummy of each axis, which an installed distribution adds in about ten lines, trains and is known everywhere."""

import os
import re
import subprocess
import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import daskw2v
from daskw2v import Params, Resources, Vectors, train
from daskw2v.config import registry as registries
from daskw2v.corpus.pieces import RawText
from daskw2v.corpus.tokenizers import TOKENIZERS, tokenizer_identity
from daskw2v.errors import ClusterError, ParameterError
from daskw2v.reports.training import Fact, list_facts, list_settings
from daskw2v.training.averaging.merge import SummedChanges, Training, find_merge_rule, merge_block
from daskw2v.training.axes import AXES, check_plug_ins
from daskw2v.training.strategies import find_strategy
from tests.support.command_line import invoke

OBJECTIVE = """
from daskw2v.objectives.base import Objective
from daskw2v.objectives.noise import word_table_rows
from daskw2v.objectives.settings import ContextsTogether

class Counting(ContextsTogether):
    name = "counting"

def train(segment, first, last, tables, rate, epoch, prepared):
    np.add.at(tables.source.reshape(-1, tables.width)[:, 0], segment.tokens[first:last], rate.alpha)
    return last - first, 0.5 * (last - first)

VALUE = Objective(
    name="counting", settings=Counting, title="the first column counts words", alphas={"by_hand": 2.0},
    initial=lambda params, table, rows: np.zeros((len(rows), params.vector_size), np.float32), tables=word_table_rows,
    prepare=lambda params, counts: (), prepared_bytes=lambda params, n: {}, trainers={"cpu": train},
)
"""
STRATEGY = """
from dataclasses import replace
from daskw2v.training.averaging.averaging import AVERAGING
from daskw2v.training.averaging.settings import Averaging

class Solitary(Averaging):
    name = "solitary"

def start(*args):
    run = AVERAGING.start(*args)
    run.facts["host"] = "a hermit"
    return run

VALUE = replace(
    AVERAGING, name="solitary", settings=Solitary, title="a hermit trains", start=start,
    describe_run=lambda params, rounds: iter([f"{rounds} prayers"]),
)
"""
DEVICE = """
from dataclasses import replace
from daskw2v.training.devices import CPU
from daskw2v.training.devices.settings import CPU as Settings

class Trainer(CPU.replica_trainer):
    @classmethod
    def find_kernel(cls, objective):
        kernel = super().find_kernel(objective)
        return lambda *args: (SLID.append(objective.name), kernel(*args))[1]

SLID = []

class Abacus(Settings):
    name = "abacus"

VALUE = replace(CPU, name="abacus", settings=Abacus, title="beads", replica_trainer=Trainer)
"""
MERGE_RULE = """
from daskw2v.training.averaging.merge import MergeRule

def finish(base, changes, training):
    return base + changes.total / np.float64(2 * changes.n)

VALUE = MergeRule(name="timid", title="half of the mean", finish=finish)
"""
FORMAT = """
from daskw2v.corpus.files import TextBlock
from daskw2v.corpus.formats import Format

def cut(source, block_bytes, storage_options, timeout):
    return [TextBlock(source, 0, source.size)]

def read(file, block, column, policy, tokenizer):
    yield tokenizer(file.read().replace(b";", b"\\n"))

VALUE = Format(name="semicolons", title="sentences and semicolons", cut=cut, read=read)
"""
TOKENIZER = """
from daskw2v.corpus.pieces import RawText
from daskw2v.corpus.tokenizers import Tokenizer

def cut(data):
    return RawText(data.upper())

VALUE = Tokenizer(name="shouting", title="in upper case", cut=cut)
"""
DUMMIES = {  # by field: the group of the entry points, the name, and the module
    "objective": ("objectives", "counting", OBJECTIVE),
    "strategy": ("strategies", "solitary", STRATEGY),
    "device": ("devices", "abacus", DEVICE),
    "merge": ("merge_rules", "timid", MERGE_RULE),
    "format": ("formats", "semicolons", FORMAT),
    "tokenizer": ("tokenizers", "shouting", TOKENIZER),
}
PARAMS = Params(vector_size=4, min_count=1, epochs=1, sample=0, window=2, alpha=0.5, min_alpha=0.5, rounds_per_epoch=2)
SENTENCES = ["one two three four", "two three four", "three four", "four five"] * 5
COUNTS = {"four": 20, "three": 15, "two": 10, "one": 5, "five": 5}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Install a distribution that adds them all, each in a module of its own; return where it lies."""
    folder = tmp_path_factory.mktemp("site")
    info = folder / "dummies-1.5.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: dummies\nVersion: 1.5\n")
    entries = [f"[daskw2v.{group}]\n{name} = dummy_{name}:VALUE\n" for group, name, _ in DUMMIES.values()]
    (info / "entry_points.txt").write_text("".join(entries))
    for _, name, source in DUMMIES.values():
        (folder / f"dummy_{name}.py").write_text(f"import numpy as np\n{source}")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        yield folder


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text("".join(f"{sentence}\n" for sentence in SENTENCES))
    return path


@pytest.fixture
def trained(site, client, text, tmp_path):
    """Return what trains with some settings, besides those of all."""

    def train_with(path=text, device="cpu", work=tmp_path / "work", **chosen):
        resources = Resources(device=device, threads=1)
        return train(
            path, work=work, params=PARAMS.replace(**chosen), resources=resources, client=client, listener=None
        )

    return train_with


def vectors_by_word(model):
    return dict(zip(model.vocabulary.words, model.vectors[:], strict=True))


def test_dummies__are_of_every_axis(site):
    assert DUMMIES.keys() == AXES.keys()
    for field, (_, name, source) in DUMMIES.items():
        assert AXES[field].names()[-1] == AXES[field].find(name).name == name
        assert len(source.split("\n\n", 1)[1].splitlines()) <= 12, "ten lines, more or less"


def test_choice__of_a_plug_in_has_settings_of_its_own(site, monkeypatch):
    """With the settings of another choice, it would become that one."""
    module = sys.modules["dummy_abacus"]
    monkeypatch.setattr(module, "VALUE", replace(module.VALUE, settings=daskw2v.CPU))
    with pytest.raises(ParameterError, match=r"device='abacus' has the settings of device='cpu': CPU.*name = 'abacus'"):
        Resources(device="abacus")


def test_page__names_groups_and_classes_of_plug_ins():
    page = (Path(daskw2v.__file__).parent / "config" / "README.md").read_text()
    rows = re.findall(r"^\| `(daskw2v\.\w+)` \| `([\w.]+)\.(\w+)` \| `(\w+)` \|$", page, re.MULTILINE)
    named = {field: (group, getattr(import_module(module), value)) for group, module, value, field in rows}
    assert named == {field: (registry._group, registry._kind) for field, registry in AXES.items()}


def test_own_values__are_found_without_looking_at_what_is_installed(trained, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)  # what was known of other folders does not count
    monkeypatch.setattr(registries, "entry_points", None)
    trained()


def test_objective__of_a_plug_in_trains(trained):
    model = trained(objective="counting", cbow_mean=False)
    assert {word: 2 * row[0] for word, row in vectors_by_word(model).items()} == COUNTS
    assert model.metadata["metrics"]["loss"] == 0.5
    (alpha,) = (choice for choice in list_settings(model.metadata["params"]) if choice.name == "alpha")
    assert alpha.default == "2", "the page has it from the objective"


def test_strategy__of_a_plug_in_trains(trained):
    model = trained(strategy="solitary")
    assert model.metadata["host"] == "a hermit"
    assert Fact("strategy", "solitary", "2 prayers") in list(list_facts(model))


def test_device__of_a_plug_in_trains(trained, tmp_path):
    model, plain = trained(device="abacus"), trained(work=tmp_path / "plain")
    assert model.metadata["resources"]["device"] == "abacus"
    assert set(sys.modules["dummy_abacus"].SLID) == {"sgns"}
    np.testing.assert_array_equal(model.vectors[:], plain.vectors[:])


def test_merge_rule__of_a_plug_in_merges(trained):
    model = trained(objective="counting", merge="timid", n_replicas=2)
    # Of two rounds, in each the mean of two replicas' counts, and half of it
    assert {word: 8 * row[0] for word, row in vectors_by_word(model).items()} == COUNTS


def test_merge_rule__may_compute_in_float64(site):
    """As NumPy does by itself; a run that goes on from a checkpoint has read float32."""
    changes = SummedChanges(np.ones((2, 4), np.float32), 2)
    merged = merge_block(find_merge_rule("timid"), np.zeros((2, 4), np.float32), [changes], Training())
    assert merged.dtype == np.float32


def test_merge_rule__that_needs_the_curvature_names_the_objective_without_it(site):
    params = Params(strategy="averaging", objective="counting", n_replicas=2)
    with pytest.raises(ParameterError, match=r"merge='sequential' needs.*counting.*merge='mean'"):
        find_strategy("averaging").check(params)


def test_format__of_a_plug_in_is_read(trained, tmp_path):
    (tmp_path / "text.sem").write_text(";".join(SENTENCES))
    model = trained(tmp_path / "text.sem", format="semicolons", objective="counting")
    assert {word: 2 * row[0] for word, row in vectors_by_word(model).items()} == COUNTS


def test_tokenizer__of_a_plug_in_cuts(trained):
    model = trained(tokenizer="shouting", objective="counting")
    assert {word: 2 * row[0] for word, row in vectors_by_word(model).items()} == {
        word.upper(): n for word, n in COUNTS.items()
    }


def test_tokenizer__of_a_plug_in_counts_by_its_code(site, monkeypatch):
    (name, before), edited = tokenizer_identity("shouting"), TOKENIZERS.find("shouting")
    assert name == "shouting"
    monkeypatch.setattr(sys.modules["dummy_shouting"], "VALUE", replace(edited, cut=lambda data: RawText(data.lower())))
    assert tokenizer_identity(name) != [name, before]


def test_model__of_plug_ins_is_described_without_them(trained, monkeypatch):
    model = trained(strategy="solitary", objective="counting")
    for registry in AXES.values():
        monkeypatch.setattr(registry, "find", registry.__getitem__)
        monkeypatch.setattr(registry, "known", registry.get)
    assert Fact("strategy", "solitary", "") in list(list_facts(model))
    assert all(choice.name for choice in list_settings(model.metadata["params"]))


class Elsewhere:
    """A client of one worker, where nothing is installed besides this package."""

    def __init__(self, folder, monkeypatch):
        self._folder, self._monkeypatch = folder, monkeypatch

    def run(self, function, *args, workers, on_error):
        with self._monkeypatch.context() as patch:
            patch.setattr(sys, "path", [entry for entry in sys.path if entry != str(self._folder)])
            return {"tcp://elsewhere": function(*args)}


@pytest.mark.parametrize("field", DUMMIES)
def test_check_plug_ins__names_a_worker_that_lacks_one(site, client, monkeypatch, field):
    name = DUMMIES[field][1]
    chosen = (PARAMS, Resources(device=name)) if field == "device" else (PARAMS.replace(**{field: name}), Resources())
    check_plug_ins(client, *chosen)
    with pytest.raises(ClusterError, match=rf"tcp://elsewhere: {field}='{name}' does not exist.*Install the same"):
        check_plug_ins(Elsewhere(site, monkeypatch), *chosen)
    check_plug_ins(None, PARAMS, Resources())  # without one, nobody is asked


def test_estimate__asks_the_plug_ins(site, text):
    line = ["estimate", str(text), "--objective", "counting", "--strategy", "solitary", "--device", "abacus"]
    result = invoke(*line, "--merge", "timid", "--threads", "1")
    assert result.exit_code == 0, result.output
    assert "tables of replicas" in result.output
    assert "table of negatives" not in result.output, "the objective prepares none"


@pytest.mark.slow
def test_command__knows_trains_and_reports_all_plug_ins(site, tmp_path):
    """In processes of its own, workers too, which find the plug-ins by themselves."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(site), str(Path(daskw2v.__file__).parents[1])])}

    def command(*words):
        line = [sys.executable, "-m", "daskw2v", *map(str, words)]
        return subprocess.run(line, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)

    (tmp_path / "text.sem").write_text(";".join(SENTENCES))
    chosen = [word for field, (_, name, _) in DUMMIES.items() for word in (f"--{field}", name)]
    settings = ["--vector-size", 4, "--min-count", 1, "--epochs", 1, "--sample", 0, "--alpha", 0.5, "--min-alpha", 0.5]
    settings += ["--n-replicas", 2, "--workers", 1, "--threads", 1]
    described = command("train", "--help-for", "solitary").stdout  # a process lists its choices once
    assert "--n-replicas" in described
    assert "--n-partitions" not in described
    result = command("train", "text.sem", "--work", "work", *chosen, *settings)
    assert result.returncode == 0, result.stderr
    model = Vectors.open(str(tmp_path / "work"))
    assert sorted(model.vocabulary.words) == sorted(word.upper() for word in COUNTS)
    told = {**model.metadata["params"], **model.metadata["resources"]}
    assert {field: told[field] for field in DUMMIES} == {field: name for field, (_, name, _) in DUMMIES.items()}
    assert model.metadata["host"] == "a hermit"
