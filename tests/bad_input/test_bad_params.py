"""Every field of Params and Resources: what is out of range or of another type is refused by name.

The limits are written down once more here: a field without a line of its own fails the first test.
"""

import json
import math
import os
import sys
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from daskw2v.config.choice import is_axis, known_settings
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.errors import ParameterError

MANY = 10**400  # beyond any float
INTEGERS = {  # lowest and highest
    "min_count": (1, None), "max_final_vocab": (1, None), "vector_size": (1, 65536), "window": (1, 1024),
    "negative": (1, 1024), "epochs": (1, None), "seed": (0, 2**63 - 1), "n_replicas": (1, 65536),
    "merges_per_round": (1, None), "frequent_rows": (1, None),
    "rounds_per_epoch": (1, None), "n_partitions": (1, 65536), "n_groups": (1, 65536), "passes_per_epoch": (1, None),
    "copied_words": (0, 65536),
    "context_size": (1, 1 << 24), "gather_every": (1, None), "workers": (1, 4096),
    "threads": (1, 4096), "hot_rows": (0, 4096), "max_in_flight": (1, 65536),
    "eval_every": (1, None), "max_bad_blocks": (0, None), "phrases": (0, 8), "phrase_min_count": (1, None),
    "patience": (1, None), "market_negative": (0, 1024), "minn": (1, 255), "maxn": (0, 255),
    "bucket": (1, 2**31 - 1), "prior_count": (0, 2**62),
}  # fmt: skip
NUMBERS = {  # highest taken below the range, lowest and highest in it
    "sample": (-5e-324, 0, 1), "context_sample": (-5e-324, 0, 1), "ns_exponent": (-10.000001, -10, 10),
    "alpha": (0, 5e-324, 10), "min_alpha": (-5e-324, 0, 10),
    "checkpoint_seconds": (-5e-324, 0, sys.float_info.max),
    "anchor": (-5e-324, 0, 1), "store_timeout": (0, 5e-324, sys.float_info.max),
    "worker_timeout": (0, 5e-324, sys.float_info.max),
    "phrase_threshold": (-1, -0.999999, sys.float_info.max), "held_out": (-5e-324, 0, 0.5),
    "min_delta": (-5e-324, 0, sys.float_info.max),
}  # fmt: skip
FLAGS = ["shrink_windows", "cbow_mean", "centered", "word_losses", "processes", "keep_inputs", "stage"]
NAMES = {"errors": "ignore", "negative_sharing": "sentence", "negative_rule": "dns", "sent_dtype": "float16",
         "phrase_scoring": "pmi"}  # fmt: skip
TEXTS = [
    "format", "column", "weight", "vocabulary", "objective", "optimizer", "strategy", "merge", "base_matrix",
    "base_model", "frozen_words", "markets", "features", "device", "scheduler", "host", "monitor", "mlflow",
]  # fmt: skip
SIZES = ["memory_limit", "block_size"]
LISTS = ["eval_similarity", "eval_analogy", "eval_categorization"]

NO_INTEGER = [True, np.True_, 1.0, 2.5, np.float64(2), math.nan, math.inf, "5", b"5", [5], 5j, Decimal(5), np.arange(3)]
NO_NUMBER = [True, np.False_, math.nan, math.inf, -math.inf, np.nan, "0.5", [0.5], 0.5j, Decimal("0.5"), np.ones(2)]
NO_TEXT = ["", b"text", 5, True, ["text"], Path("text"), np.array(["a", "b"])]
NO_SIZE = [
    "0 B",
    "-5 MiB",
    "4 apples",
    "",
    b"4 GiB",
    0,
    -1,
    0.5,
    True,
    math.nan,
    math.inf,
    [4],
    np.arange(3),
    "9" * 5000,
]

BAD = {
    **{name: [low - 1, *([] if high is None else [high + 1]), *NO_INTEGER] for name, (low, high) in INTEGERS.items()},
    **{name: [below, math.nextafter(high, math.inf), MANY, *NO_NUMBER] for name, (below, _, high) in NUMBERS.items()},
    **{name: [0, 1, "true", "", [], np.array([True, False])] for name in FLAGS},
    **{name: [other, other.upper(), *NO_TEXT] for name, other in NAMES.items()},
    **dict.fromkeys(TEXTS, NO_TEXT),
    **dict.fromkeys(SIZES, NO_SIZE),
    **{name: ["ws353.tsv", Path("a"), b"a", [1], [None], [b"a"], [""], ["a\0b"], {"a"}, 5] for name in LISTS},
    "feature_weights": ["brand=2", {"brand": -1}, {"brand": 1e-30}, {"brand": "2"}, {1: 2}, {"": 2}, ["brand"], ["=2"],
                        [("brand", 2, 3)], ["brand=x"], ["a=1", "a=2"], {"a": MANY}, {"a": math.nan}, {"a": True}, 5,
                        [None]],
    "tokenizer": ["", b"lower", 5, True, ["lower"], object(), np.array([1, 2])],
    "phrase_delimiter": [*NO_TEXT, " ", "a b", "\t", "_\n", "\u00a0", "\0", "\ud800"],
    "filters": [5, True, {"day": 1}, ["day"], ["day=>1"], [("day", "like", "x")], [("day", ">", None)], [("", "=", 1)]],
    "base_vectors": ["", b"text", 5, True, ["text"], object(), np.array(["a", "b"]), "a\0b"],
    "delimiter": [*NO_TEXT, ";;", "é", '"', "\n", "\r", "\0"],
    "tensorboard": ["", b"runs", 5, True, ["runs"], "a\0b"],
    "prefix_sizes": [16, "16", [17], [0], [-16], [16, 16], [32, 16], [True], [16.0], ["a"], [None], {16},
                     [*range(16, 144, 16)]],
    "storage_options": ["anon=true", [("anon", True)], {1: True}, 5, True],
}  # fmt: skip
KNOWN = {name: (cls, known) for cls in (Params, Resources) for name, known in known_settings(cls).items()}
FIELDS = {name: (cls, known.field) for name, (cls, known) in KNOWN.items()}

# Fields that limit each other: the other end, out of the way.
OTHER = {"alpha": {"min_alpha": 0}, "min_alpha": {"alpha": 10}, "prefix_sizes": {"vector_size": 65536},
         "markets": {"market_negative": 1}, "minn": {"maxn": 255}, "monitor": {"held_out": 0.1},
         "phrase_threshold": {"phrases": 1, "phrase_scoring": "npmi"}}  # fmt: skip
NEEDED = {"maxn": 6, "features": "items.csv", "phrases": 1, "base_model": "v1", "monitor": "similarity/pairs"}


def make(name, value):
    cls, known = KNOWN[name]
    owner = {known.owner.axis: known.choices[0]} if known.choices else {}
    if name == "n_groups" and known.field.metadata["check"](value):
        owner["n_partitions"] = value  # it divides itself
    if name == "maxn" and known.field.metadata["check"](value) and value:
        owner["minn"] = 1
    if name == "phrase_threshold" and known.field.metadata["check"](value) and value is not None and value > 1:
        owner["phrase_scoring"] = "default"
    needed = {key: NEEDED[key] for key in known.needs[:1]}
    params = cls(**{**needed, **OTHER.get(name, {}), **owner, name: value})
    return getattr(params, name) if is_axis(known.field) else params.flat()[name]


def test_every_field__has_its_cases():
    assert BAD.keys() == FIELDS.keys()


def refusal(name, value):
    """Return how a value is refused."""
    try:
        make(name, value)
    except ParameterError as error:
        return error
    pytest.fail(f"{name}={value!r} is taken")


@pytest.mark.parametrize("name", BAD)
def test_bad_value__is_refused_by_field_value_rule_and_remedy(name):
    metadata = FIELDS[name][1].metadata
    for value in BAD[name]:
        refused = refusal(name, value)
        shown = f"a {type(value).__name__} (not shown" if name == "storage_options" else repr(value)[:200]
        assert refused.problem.startswith(f"{name}={shown}")
        assert f" is not {metadata['bound']}" in refused.problem
        assert refused.remedy.startswith(f"Give {name} ({metadata['help']}) {metadata['bound']}")
        assert len(refused.problem) < 700


def test_none__is_taken_where_it_means_chosen_for_you():
    for name, (_, f) in FIELDS.items():
        if f.metadata["optional"]:
            assert make(name, None) is None, name
        elif name != "phrases":  # no group
            shown = "a NoneType" if name == "storage_options" else "None"
            assert refusal(name, None).problem.startswith(f"{name}={shown}")


def check_kept(name, value, expected, kind):
    kept = make(name, value)
    assert (kept, type(kept)) == (expected, kind), f"{name}={value!r}"


def test_integers__are_taken_at_both_ends_and_from_numpy():
    for name, (low, high) in INTEGERS.items():
        for value in (low, low + 1 if high is None else high, np.int64(low), np.uint8(low)):
            check_kept(name, value, value, int)


def test_numbers__are_taken_at_both_ends_and_from_numpy():
    for name, (_, low, high) in NUMBERS.items():
        for value in (low, high, np.float64(high), np.float32(min(1, high)), np.int32(high >= 1)):
            check_kept(name, value, value, float)


def test_flags__are_taken_from_numpy():
    for name in FLAGS:
        for value in (True, np.False_):
            check_kept(name, value, bool(value), bool)


def test_sizes__are_text_or_whole_bytes():
    for name in SIZES:
        for value in (1, 1.9, np.int64(1000)):
            check_kept(name, value, int(value), int)
        for value in ("1", "4 GiB", "1e3 kB"):
            check_kept(name, value, value, str)


@pytest.mark.parametrize("cls", [Params, Resources])
def test_numpys_numbers__leave_nothing_in_json(cls):
    own = {name for name, (owner, known) in KNOWN.items() if owner is cls and not known.choices}
    taken = {name: np.int64(max(1, low)) for name, (low, _) in INTEGERS.items() if name in own}
    taken |= {name: np.float32(min(1, high)) for name, (*_, high) in NUMBERS.items() if name in own}
    needed = {key: NEEDED[key] for name in taken for key in KNOWN[name][1].needs[:1] if key not in taken}
    values = cls(**needed, **taken).flat()
    assert json.loads(json.dumps({name: values[name] for name in taken})) == taken


def test_number__may_have_more_digits_than_python_writes():
    with pytest.raises(ParameterError, match=r"window=\(a int too large to write\) is not an integer in 1\.\.1024\."):
        Params(window=10**5000)


@pytest.mark.parametrize("options", [[("secret", "hunter2")], "secret=hunter2", {1: "hunter2"}])
def test_storage_options__are_never_shown(options):
    with pytest.raises(ParameterError, match="may hold secrets") as caught:
        Resources(storage_options=options)
    assert "hunter2" not in str(caught.value)
    assert "hunter2" not in repr(Resources(storage_options={"secret": "hunter2"}))


@pytest.mark.parametrize("cls", [Params, Resources])
def test_unknown_name__is_refused_as_python_does(cls):
    with pytest.raises(TypeError, match="unexpected keyword argument 'vector_dimension'"):
        cls(vector_dimension=100)


# Values of every JSON type, and the edges at which ranges break.
ANYTHING = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.binary(max_size=2),
    st.lists(st.integers(), max_size=2),
    st.sampled_from([-1, 0, 1, 2**63, -0.5, 10.5, 65537, math.inf, math.nan, "", "text", "4 GiB", "0 B"]),
)


@pytest.mark.parametrize("name", ["tensorboard", "base_vectors"])
def test_home_directory_that_is_unknown__is_refused_by_name(name):
    with pytest.raises(ParameterError, match=rf"^{name}='~0/a': No home directory is known for '~0/a'\. Set HOME"):
        make(name, "~0/a")


@pytest.mark.parametrize("name", FIELDS)
@settings(max_examples=25)
@given(value=ANYTHING)
@example(value="@")
@example(value="~0")
def test_any_value__is_either_kept_or_refused_by_name(name, value):
    metadata = FIELDS[name][1].metadata
    if name in ("scheduler", "host") and isinstance(value, str) and "@" in value:
        assert "holds a secret" in refusal(name, value).problem
    elif value is None and name == "phrases":
        assert Params(phrases=value) == Params()
    elif (
        isinstance(value, str)
        and os.path.expanduser(value).startswith("~")
        and metadata["convert"]
        and metadata["is_location"]
        and metadata["check"](value)  # a list of locations refuses text first
    ):
        assert refusal(name, value).problem.startswith(f"{name}={value!r}: No home directory is known")
    elif (value is None and metadata["optional"]) or metadata["check"](value):
        kept, convert = make(name, value), metadata["convert"]
        assert kept is value or kept == convert(value)
    else:
        refused = refusal(name, value)
        assert refused.problem.startswith(f"{name}=")
        assert f" is not {metadata['bound']}" in refused.problem or (
            is_axis(FIELDS[name][1]) and isinstance(value, str)
        )
