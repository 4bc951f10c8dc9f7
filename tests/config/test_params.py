import dataclasses
import functools
import json
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskw2v import EdgeList, Walks
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.config.suggestions import _SUGGESTIONS
from daskw2v.errors import ParameterError, UnknownParameterError

FIELDS = [(cls, f) for cls in (Params, Resources) for f in dataclasses.fields(cls)]


def test_defaults__are_in_range_and_carry_help():
    for cls, f in FIELDS:
        assert f.metadata["help"], f.name
        assert f.metadata["bound"], f.name
        value = getattr(cls(), f.name)
        assert value is None or f.metadata["check"](value), f"{f.name}={value!r}"


def test_min_alpha__may_not_exceed_alpha():
    assert Params(alpha=0.01, min_alpha=0.01).min_alpha == 0.01
    with pytest.raises(ParameterError, match=r"min_alpha=0\.02 is above alpha=0\.01"):
        Params(alpha=0.01, min_alpha=0.02)
    assert Params(min_alpha=0.02).alpha is None  # the objective's own


@given(
    window=st.integers(1, 1024),
    alpha=st.none() | st.floats(1e-4, 10),
    seed=st.integers(0, 2**63 - 1),
    shrink_windows=st.booleans(),
    max_final_vocab=st.none() | st.integers(1),
)
def test_as_dict__survives_json_and_comes_back_equal(**values):
    params = Params(**values)
    assert Params.from_dict(json.loads(json.dumps(params.as_dict()))) == params


def split_lines(lines):
    return [line.split() for line in lines]


def test_as_dict__names_a_callable_tokenizer_by_its_import_path():
    assert Params(tokenizer=split_lines).as_dict()["tokenizer"] == f"{__name__}:split_lines"


class Splitter:
    """Callable, with what cannot be copied; `call` makes it a function that its module holds by name."""

    def __init__(self):
        self.lock = threading.Lock()

    def __call__(self, lines):
        return split_lines(lines)


@functools.lru_cache
def cached(lines):
    return split_lines(lines)


holds_a_lock = functools.wraps(split_lines)(Splitter())
holds_a_lock.__qualname__ = "holds_a_lock"


@pytest.mark.parametrize("function", [cached, holds_a_lock])
def test_as_dict__does_not_copy_the_tokenizer(function):
    assert Params(tokenizer=function).as_dict()["tokenizer"] == f"{__name__}:{function.__qualname__}"
    assert Params(tokenizer=function).replace(window=3).tokenizer is function


class Unhashable(Splitter):
    __hash__ = None


unhashable = functools.wraps(split_lines)(Unhashable())
unhashable.__qualname__ = "unhashable"


@pytest.mark.parametrize(
    "function",
    [
        lambda lines: lines,
        functools.partial(split_lines),
        Splitter(),
        Splitter().__call__,
        functools.wraps(split_lines)(Splitter()),  # goes by a name that is another's
        str.split,
        unhashable,
    ],
)
def test_tokenizer__must_be_a_function_that_its_name_stands_for(function):
    def local(lines):
        return lines

    for refused in (function, local):
        with pytest.raises(ParameterError, match=r"a function that a module holds under its name.*write a function"):
            Params(tokenizer=refused)


@pytest.mark.parametrize(("name", "one", "other"), [("sample", 0, -0.0), ("alpha", 1, 1.0)])
def test_as_dict__writes_equal_numbers_alike(name, one, other):
    texts = {json.dumps(Params(**{name: value}).as_dict()) for value in (one, other)}
    assert len(texts) == 1


def test_number__may_be_too_large_for_a_float():
    with pytest.raises(ParameterError, match=r"checkpoint_seconds=1000.*finite"):
        Resources(checkpoint_seconds=10**400)


def test_errors__says_what_becomes_of_bad_jsonl():
    (errors,) = (f for f in dataclasses.fields(Params) if f.name == "errors")
    assert "both drop lines that are no readable JSONL" in errors.metadata["help"]


def test_from_dict__refuses_unknown_names():
    with pytest.raises(ParameterError, match="'size' is no parameter"):
        Params.from_dict({"size": 100})


@pytest.mark.parametrize("cls", [Params, Resources])
def test_dataclasses__are_frozen_and_keyword_only(cls):
    with pytest.raises(dataclasses.FrozenInstanceError):
        cls().seed = 2
    with pytest.raises(TypeError):
        cls(1)


def test_replace__checks_the_copy():
    assert Params().replace(window=7) == Params(window=7)
    with pytest.raises(ParameterError, match="window=0"):
        Params().replace(window=0)


def test_storage_options__are_no_shared_default():
    assert Resources().storage_options is not Resources().storage_options


@pytest.mark.parametrize(("size", "n_bytes"), [("32 MiB", 1 << 25), (1000, 1000), ("1kB", 1000)])
def test_block_bytes__reads_sizes(size, n_bytes):
    assert Resources(block_size=size).block_bytes == n_bytes


@pytest.mark.parametrize(
    ("cls", "name", "remedy"),
    [
        (Params, "size", "Give vector_size."),
        (Params, "iter", "Give epochs."),
        (Params, "minCount", "Give min_count."),
        (Params, "sg", "Give objective (sgns and sg_hs are skip-gram, cbow_ns and cbow_hs are CBOW)."),
        (Params, "hs", "Give objective (sg_hs and cbow_hs have hierarchical softmax"),
        (Params, "max_vocab_size", "Give max_final_vocab (words are counted exactly"),
        (Params, "trim_rule", "Give vocabulary (a list"),
        (
            Params,
            "workers",
            "Give threads to Resources (worker processes of a local cluster are workers of Resources).",
        ),
        (Params, "threads", "Give threads to Resources."),
        (Params, "compute_loss", "Leave it out. The loss is always computed"),
        (Params, "widnow", "Give window."),
        (Params, "colour", "The names are: tokenizer, format,"),
        (Resources, "size", "Give vector_size to Params."),
        (Resources, "window", "Give window to Params."),
        (Resources, "worker", "Give workers."),
    ],
)
def test_unknown_name__is_answered_by_the_name_that_is_meant(cls, name, remedy):
    for make in (cls, cls().replace):
        with pytest.raises(UnknownParameterError) as caught:
            make(**{name: "hunter2"})
        assert caught.value.problem == f"{cls.__name__} got an unexpected keyword argument {name!r}."
        assert caught.value.remedy.startswith(remedy)
        assert isinstance(caught.value, ParameterError)  # and Python's own kind, which callers may look for
        assert isinstance(caught.value, TypeError)


def test_suggestions__name_parameters_that_exist():
    fields = {name for cls in (Params, Resources, Walks, EdgeList) for name in cls.names()}
    meant = {name: found.name for name, found in _SUGGESTIONS.items() if found.name}
    assert set(meant.values()) <= fields
    assert not {name for name in _SUGGESTIONS if name in fields} - {"workers"}
    assert all(name == name.lower() for name in _SUGGESTIONS)
