"""Who reads a field: the values whose `honours` name it, of the axes that it names in `honoured_by`."""

from types import SimpleNamespace

import pytest

from daskw2v.collections.kinds import KINDS as INPUTS
from daskw2v.config.choice import find_readers, known_fields, refuse_unread
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.corpus.formats import FORMATS
from daskw2v.errors import ParameterError
from daskw2v.objectives.registry import OBJECTIVES
from daskw2v.phrases.score import SCORINGS
from daskw2v.sampling.hierarchy import RULES
from daskw2v.training.devices import DEVICES
from daskw2v.training.strategies import STRATEGIES
from tests.support.refusals import refusal

FIELDS = {**known_fields(Params), **known_fields(Resources)}
KINDS = {"objective": OBJECTIVES, "strategy": STRATEGIES, "device": DEVICES, "format": FORMATS, "input": INPUTS}
OURS, THEIRS = SimpleNamespace(honours=("features", "maxn")), SimpleNamespace(honours=("maxn", "window"))


def test_names__mean_one_thing():
    names = [name for registry in KINDS.values() for name in registry]
    assert len(names) == len({*names})
    assert not {*names} & FIELDS.keys()


@pytest.mark.parametrize("axis", KINDS)
def test_fields__are_honoured_by_some_of_each_axis_that_they_name_and_of_no_other(axis):
    honoured = {name for reader in KINDS[axis].values() for name in reader.honours}
    assert honoured == {name for name, f in FIELDS.items() if axis in f.metadata["honoured_by"]}


def test_fields__name_axes():
    for f in FIELDS.values():
        assert {*f.metadata["honoured_by"]} <= KINDS.keys()


@pytest.mark.parametrize(("name", "registry"), [("phrase_scoring", SCORINGS), ("negative_rule", RULES)])
def test_choices__are_the_names_of_the_registry(name, registry):
    """The registry stands above Params, which cannot ask it."""
    assert FIELDS[name].metadata["choices"] == tuple(registry)


@pytest.mark.parametrize(
    ("name", "readers"),
    [
        ("window", ("sgns", "sg_hs", "theirs")),
        ("maxn", ("sgns", "sg_hs", "theirs")),
        ("features", ("sgns", "sg_hs")),
    ],
)
def test_plug_in__reads_what_all_read_and_what_it_says(name, readers):
    assert find_readers(FIELDS[name], "objective", {"sgns": OURS, "sg_hs": OURS, "theirs": THEIRS}) == readers


def test_refuse_unread__names_value_readers_and_remedy():
    registry = {"sgns": OURS, "theirs": THEIRS}
    refuse_unread(Params(maxn=7, window=9), "objective", "theirs", registry)
    with pytest.raises(ParameterError) as caught:
        refuse_unread(Params(features="a.csv"), "objective", "theirs", registry)
    assert caught.value.problem == "features='a.csv' changes nothing for objective='theirs'; it is for sgns."
    assert caught.value.remedy == "Leave features out, or choose another objective."


@pytest.mark.parametrize("cls", [Params, Resources])
@pytest.mark.parametrize("kind", KINDS)
def test_refuse_unread__passes_defaults(cls, kind):
    refusals = {name: refusal(refuse_unread, cls(), kind, name, KINDS[kind]) for name in KINDS[kind]}
    assert refusals == dict.fromkeys(KINDS[kind])
