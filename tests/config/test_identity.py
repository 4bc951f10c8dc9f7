"""Names of results: today's must stay for ever, and a later field renames nothing until it is set."""

import hashlib
import json
from types import SimpleNamespace

import pytest
from later_params import LaterParams, later

from daskw2v.config.identity import FIRST_RELEASE, identity_fields, identity_values
from daskw2v.config.params import REMOVED, Params
from daskw2v.config.settings import STAGE_NAMES, integer, setting
from daskw2v.corpus.files import Source
from daskw2v.errors import ParameterError
from daskw2v.sampling.context_matrix import sampling_rules
from daskw2v.shards.encode import encoding_signature
from daskw2v.shards.layout import corpus_identity
from daskw2v.training.preparation.planned import run_identity, settled_params

SOURCES = [Source("file:///a.txt", 10, "1", "text", None)]
TEXT = SimpleNamespace(identity="text")
WORDS = SimpleNamespace(identity="words")
# Names that work directories of the first release have: of runs, of corpora, and of encodings in blocks of 64 MiB
NAMES = {
    "defaults": ({}, "4e3815102283", "2fec7c22b528f070ad0d", "46ac7e06be25509d5d7e"),
    "rotation": (
        {"strategy": "rotation", "n_partitions": 4, "passes_per_epoch": 8, "negative_rule": "sns"},
        "fd0c6c71d3f3", "2fec7c22b528f070ad0d", "46ac7e06be25509d5d7e",
    ),
    "columns": (
        {"objective": "context_matrix", "ns_exponent": 0.75, "strategy": "columns", "context_size": 32, "window": 3,
         "seed": 7, "gather_every": 16},
        "7e34b6e42c9f", "2fec7c22b528f070ad0d", "46ac7e06be25509d5d7e",
    ),
    "phrases": (
        {"phrases": 2, "phrase_scoring": "npmi", "max_bad_blocks": 3, "format": "jsonl", "errors": "skip",
         "tokenizer": "normalize", "column": "t"},
        "dcd6d787f9e3", "bc64bed4e4876bc36def", "a955c2170e445826d67a",
    ),
    "words": (
        {"min_count": 1, "max_final_vocab": 10, "base_model": "v0001-a", "anchor": 0.5, "sample": 0},
        "60083eed1961", "2fec7c22b528f070ad0d", "46ac7e06be25509d5d7e",
    ),
}  # fmt: skip


@pytest.mark.parametrize("cls", [Params, LaterParams])
@pytest.mark.parametrize(("options", "run", "corpus", "encoding"), NAMES.values(), ids=NAMES)
def test_names__are_those_of_the_first_release(cls, options, run, corpus, encoding):
    params = settled_params(cls(**{"strategy": "averaging", **options}))  # what is chosen where none is named
    assert run_identity(TEXT, WORDS, params) == run
    assert corpus_identity(SOURCES, params) == corpus
    assert encoding_signature(params, 64 << 20) == encoding


def test_tokenizer__that_makes_other_tokens_than_in_the_first_release_names_other_text():
    params = Params(tokenizer="lower")
    assert corpus_identity(SOURCES, params) != "2f4c65b58a4fead8b236"
    assert encoding_signature(params, 64 << 20) != "48ebf5b6db3fa3db3ba1"


@pytest.mark.parametrize(
    ("name", "first", "which", "values"),
    [
        ("ns_exponent", 0.75, "objective", ("sgns", "context_matrix")),
        ("ns_exponent", 0.75, "objective", ("cbow_ns", "subwords")),
    ],
)
def test_another_default_than_in_the_first_release__renames_only_runs_that_it_changes(name, first, which, values):
    """Of the two values, the first goes on with the default of the first release."""
    plain = Params(strategy="averaging")
    runs = [plain.replace(**{which: value}).replace(**{name: given}) for value in values for given in (None, first)]
    names = [run_identity(TEXT, WORDS, settled_params(params)) for params in runs]
    assert names[0] == names[1]
    assert len(set(names)) == 3


def test_gather_every__has_its_first_default_in_names_of_other_strategies():
    assert identity_fields(Params(strategy="averaging"))["gather_every"] == 16
    columns = Params(objective="context_matrix", strategy="columns")
    assert identity_fields(columns)["gather_every"] is None
    assert identity_fields(columns.replace(gather_every=16))["gather_every"] == 16


def test_passes_per_epoch__has_its_first_default_in_names_of_other_strategies():
    assert identity_fields(Params(strategy="averaging"))["passes_per_epoch"] == 8
    assert identity_fields(Params(strategy="rotation"))["passes_per_epoch"] is None
    assert identity_fields(Params(strategy="rotation", passes_per_epoch=8))["passes_per_epoch"] == 8


@pytest.mark.parametrize("cls", [Params, LaterParams])
def test_fields_of_a_stage__are_those_of_the_first_release(cls):
    params = cls()
    values = {
        "read": ["whitespace", None, "text", "replace", 0],
        "phrases": [0, 5, None, "default", "_"],
        "vocabulary": [5, None, None],
        "matrix": [5, True, 1e-4, 1, 1024, None],
    }
    for stage, first in values.items():
        assert identity_values(params, stage) == first == list(identity_fields(params, stage).values())
    assert list(identity_fields(params)) == list(FIRST_RELEASE)
    assert json.dumps(sampling_rules(params)) == (
        '{"context_size": 1024, "window": 5, "shrink_windows": true, "sample": 0.0001}'
    )


def test_first_release__is_never_added_to():
    """A new field says its stage, and does not belong in this list: names would change."""
    digest = hashlib.sha256(" ".join(FIRST_RELEASE).encode()).hexdigest()
    assert digest == "d443b0f02ec551ac432e59803dff76fbac813c83563079060653642efb94e995"
    assert set(FIRST_RELEASE) <= {*Params.names(), *REMOVED}


def test_removed_fields__still_stand_in_names():
    """Or work that earlier releases finished would not be found."""
    names = list(identity_fields(Params(), "train"))
    assert names.index("warmup") == names.index("merge") + 1
    assert "warmup" not in identity_fields(Params(), "vocabulary")


def test_merge__has_its_first_default_in_names_where_one_replica_trains():
    assert identity_fields(Params())["merge"] == "momentum"
    assert identity_fields(Params(strategy="averaging", n_replicas=2))["merge"] is None
    assert identity_fields(Params(strategy="averaging", n_replicas=2, merge="mean"))["merge"] == "mean"


def test_params__of_earlier_releases_are_read():
    values = Params().as_dict()
    assert Params.from_dict({**values, "warmup": None}) == Params()
    with pytest.raises(ParameterError, match="'warmup' is no parameter"):
        Params.from_dict({**values, "warmup": 0.1})


@pytest.mark.parametrize("stage", STAGE_NAMES)
def test_later_field__renames_its_stage_where_it_is_not_as_by_default(stage):
    plain, changed = LaterParams(), LaterParams(**later(stage))
    for other in STAGE_NAMES:
        assert (identity_values(plain, other) == identity_values(changed, other)) is (other != stage)
    assert identity_values(changed, stage) == [*identity_values(plain, stage), later(stage)]
    assert run_identity(TEXT, WORDS, plain) != run_identity(TEXT, WORDS, changed)


def test_later_fields__count_by_their_names():
    one, other = ({**later("read"), name: 3} for name in ("a_read", "b_read"))
    assert identity_values(LaterParams(**one), "read") != identity_values(LaterParams(**other), "read")
    assert list(identity_values(LaterParams(b_read=1, a_read=2), "read")[-1]) == ["a_read", "b_read"]


def test_without__leaves_fields_out_of_either_kind():
    params = LaterParams(a_read=7)
    assert identity_values(params, "read", without=("tokenizer", "a_read")) == [None, "text", "replace", 0]


@pytest.mark.parametrize("stage", [None, "training"])
def test_params__refuse_a_field_without_a_stage(stage):
    with pytest.raises(TypeError, match=r"Forgetful\.new is declared with stage=.*read, phrases, vocabulary"):

        class Forgetful(Params):
            new: int = setting(1, "new", integer(0), stage=stage)


def test_params__refuse_a_field_that_is_no_setting():
    with pytest.raises(TypeError, match=r"Plain\.new is declared with stage=None"):

        class Plain(Params):
            new: int = 1
