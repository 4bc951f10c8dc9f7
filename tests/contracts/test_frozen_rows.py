"""Frozen rows of the input table do not move; all others are trained as if they did not.

An objective, strategy or device that does not say that it honours `frozen_words` is refused.
"""

import importlib
from dataclasses import replace

import numpy as np
import pytest

from daskw2v import Resources, Vectors, train
from daskw2v.config.choice import get_choices
from daskw2v.config.params import Params
from daskw2v.errors import ParameterError
from daskw2v.kernels.simd import aligned_zeros, padded
from daskw2v.objectives.base import NOT_FROZEN, HotRows, Rate, Tables
from daskw2v.objectives.registry import OBJECTIVES
from daskw2v.sampling.segments import Segment
from daskw2v.training.devices import DEVICES
from daskw2v.training.preparation.request import check_choices
from daskw2v.training.strategies import STRATEGIES
from tests.support.options import reads_field

N, D = 60, 20
OPTIONS = [
    *((objective, {}) for objective in sorted(OBJECTIVES) if reads_field(OBJECTIVES[objective], "frozen_words")),
    ("sgns", {"negative_sharing": "pair"}),
    ("cbow_ns", {"negative_sharing": "pair", "cbow_mean": False}),
]


def segment_of(rng):
    """Sentences in which no word stands twice, so that a window has each row once."""
    tokens = np.concatenate([rng.permutation(N)[:20] for _ in range(12)]).astype(np.int32)
    return Segment(tokens, np.arange(0, 2 * len(tokens), 2), np.arange(0, len(tokens) + 1, 20))


def count_table_rows(params, rng, hot, frozen):
    """Tables of normal draws, and the same as (rows, D) float64."""
    width, tables, truth = padded(D), [], []
    for rows in OBJECTIVES[params.objective.name].tables(params, N).values():
        table = aligned_zeros((rows + hot) * width)
        inside = table.reshape(-1, width)[:rows, :D]
        inside[:] = rng.normal(scale=0.3, size=inside.shape)
        tables.append(table)
        truth.append(inside.astype(np.float64))
    copies = HotRows(hot, len(truth[0]), len(truth[1]), 7) if hot else HotRows(0, 0, 0, 1)
    return Tables(*tables, width, copies, frozen), truth


def trained(params, frozen, hot=0):
    """Train on one thread; return the tables as they were and as they are, and how they were trained."""
    rng = np.random.default_rng(3)
    segment, prepared = segment_of(rng), OBJECTIVES[params.objective.name].prepare(params, rng.integers(1, 99, N))
    memory, before = count_table_rows(params, rng, hot, frozen)
    OBJECTIVES[params.objective.name].trainers["cpu"](
        segment, 0, len(segment.tokens), memory, Rate(0.05, 0.0, 0), 1, prepared
    )
    after = [t.reshape(-1, memory.width)[: len(b), :D] for t, b in zip(memory[:2], before, strict=True)]
    return before, after, segment, prepared


@pytest.mark.parametrize("hot", [0, 30])
@pytest.mark.parametrize(("objective", "options"), OPTIONS)
def test_frozen_rows__do_not_move_and_others_do(objective, options, hot):
    params = Params(objective=objective, vector_size=D, window=4, **options)
    frozen = (np.arange(N) % 3 == 0).astype(np.uint8)
    before, after, _, _ = trained(params, frozen, hot)
    moved = np.abs(after[0] - before[0]).max(axis=1) > 0
    np.testing.assert_array_equal(moved, frozen == 0)
    np.testing.assert_array_equal(after[0][frozen == 1], before[0][frozen == 1].astype(np.float32))
    assert np.abs(after[1] - before[1]).max() > 1e-4


@pytest.mark.parametrize(("objective", "options"), OPTIONS)
def test_no_frozen_row__changes_nothing(objective, options):
    params = Params(objective=objective, vector_size=D, window=4, **options)
    _, none, _, _ = trained(params, NOT_FROZEN)
    _, zeros, _, _ = trained(params, np.zeros(N, np.uint8))
    for a, b in zip(none, zeros, strict=True):
        np.testing.assert_array_equal(a, b)


class PutBack(np.ndarray):
    """A table with some rows that are put back whenever rows are read."""

    def __getitem__(self, item):
        rows = self.view(np.ndarray)
        rows[self.frozen] = self.fixed
        return rows[item]


@pytest.mark.parametrize(("objective", "options"), OPTIONS)
def test_windows_with_frozen_rows__are_trained_as_in_the_reference(objective, options):
    """The reference of skip-gram, whose windows are apart, is given one window at a time."""
    params = Params(objective=objective, vector_size=D, window=4, **options)
    frozen = (np.arange(N) % 3 == 0).astype(np.uint8)
    truth, after, segment, prepared = trained(params, frozen)
    reference = importlib.import_module(f"daskw2v.objectives.{objective}.reference")
    source, fixed = truth[0], truth[0][frozen == 1]
    if reference.RULE.as_one:
        source = truth[0].view(PutBack)
        source.frozen, source.fixed = frozen == 1, fixed
    step = len(segment.tokens) if reference.RULE.as_one else 1
    for first in range(0, len(segment.tokens), step):
        reference.train(segment, first, first + step, source, truth[1], Rate(0.05, 0.0, 0), 1, prepared)
        truth[0][frozen == 1] = fixed
    for table, expected in zip(after, truth, strict=True):
        np.testing.assert_allclose(table, expected, rtol=1e-4, atol=3e-5)


WORDS = [f"w{i}" for i in range(30)]
BASE = Vectors(WORDS[::2], np.random.default_rng(5).normal(scale=0.3, size=(15, 8)))
TINY = Params(vector_size=8, min_count=1, sample=0, window=2, epochs=1, alpha=0.05, base_vectors=BASE)


def problem_of(params, device):
    """Return why a combination is refused, or None."""
    try:
        check_choices(params, Resources(device=device))
    except ParameterError as error:
        return error.problem
    return None


COMBINATIONS = [
    (objective, strategy, device)
    for objective in sorted(OBJECTIVES)
    for strategy in sorted(STRATEGIES)
    for device in sorted(DEVICES)
    if not problem_of(TINY.replace(objective=objective, strategy=strategy), device)
]


def test_combinations__are_those_with_a_kernel():
    assert {("sgns", "averaging", "cpu"), ("sgns", "rotation", "cpu"), ("context_matrix", "columns", "cpu")} <= {
        *COMBINATIONS
    }


@pytest.mark.parametrize(("objective", "strategy", "device"), COMBINATIONS)
def test_frozen_words__do_not_move_or_are_refused(objective, strategy, device, client, tmp_path):
    params = TINY.replace(objective=objective, strategy=strategy, frozen_words="known")
    if problem := problem_of(params, device):
        assert problem.startswith("frozen_words='known' changes nothing for ")
        return
    if device != "cpu":
        return  # `on_cuda.py` trains on a GPU, or on the simulator of one
    text, rng = tmp_path / "text.txt", np.random.default_rng(6)
    text.write_text("".join(f"{' '.join(rng.choice(WORDS, 12))}\n" for _ in range(40)))
    resources = Resources(device=device, threads=1)
    model = train(text, work=tmp_path / "work", params=params, resources=resources, client=client, listener=None)
    np.testing.assert_array_equal(model[WORDS[::2]], BASE[WORDS[::2]])
    first = OBJECTIVES[objective].initial(params, "input", np.arange(len(model)))
    others = [model.vocabulary.id(word) for word in WORDS[1::2]]
    assert (np.abs(model.vectors[:] - first).max(axis=1)[others] > 0).all()


@pytest.mark.parametrize(
    ("registry", "name", "field"),
    [(OBJECTIVES, "sgns", "objective"), (STRATEGIES, "averaging", "strategy"), (DEVICES, "cpu", "device")],
)
def test_frozen_words__of_what_does_not_honour_them_are_refused(registry, name, field, monkeypatch):
    """A plug-in says by `honours` that its rows do not move."""
    asked = {"objective": "sgns", "strategy": "averaging", "device": "cpu", field: "theirs"}
    device = asked.pop("device")
    silent = replace(registry[name], name="theirs", honours=())
    choices = get_choices((Resources if field == "device" else Params).__dataclass_fields__[field])
    theirs = type("Theirs", (choices[name],), {"name": "theirs"})
    monkeypatch.setitem(choices, "theirs", theirs)
    silent = replace(silent, settings=theirs)
    monkeypatch.setitem(registry, "theirs", silent)
    params = TINY.replace(**asked, frozen_words="known")
    assert problem_of(params, device).startswith(
        f"frozen_words='known' changes nothing for {field}='theirs'; it is for"
    )
    monkeypatch.setitem(registry, "theirs", replace(silent, honours=("frozen_words",)))
    assert problem_of(params, device) is None
