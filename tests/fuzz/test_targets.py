"""What is fuzzed, on a few inputs: seeds are read, findings stay mended, and mutations end in the package's errors."""

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz.targets import STRUCTURES, TARGETS, clean, fields_of
from tests.fuzz.threads import read_here

# Threads of a cluster that other tests left open draw random numbers too, which Hypothesis takes for a strategy's
pytestmark = pytest.mark.filterwarnings("ignore:Do not use the .random. module inside strategies")


@pytest.fixture(scope="module", autouse=True)
def _folders():
    with pytest.MonkeyPatch.context() as patch:
        read_here(patch)
        yield
    clean()


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", TARGETS)
def test_seed__is_read(name):
    problems = [TARGETS[name](seed) for seed in TARGETS[name].seeds()]
    assert None in problems or name in STRUCTURES  # whose seeds are changes of fields
    assert "" not in problems


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
@settings(max_examples=60, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_mutation__ends_in_an_error_of_ours_or_is_read(name, data):
    seed = bytearray(data.draw(st.sampled_from(TARGETS[name].seeds())))
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(seed)))
        seed[place : place + data.draw(st.integers(0, 4))] = data.draw(st.binary(max_size=4))
    assert TARGETS[name](bytes(seed)) != ""


@pytest.mark.slow
@given(content=st.binary(max_size=200))
@pytest.mark.parametrize("name", TARGETS)
@settings(max_examples=30, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
def test_bytes__end_in_an_error_of_ours_or_are_read(name, content):
    assert TARGETS[name](content) != ""


@pytest.mark.slow
@pytest.mark.parametrize("name", STRUCTURES)
def test_field__of_any_value_ends_in_an_error_of_ours_or_is_read(name):
    for change in random.Random(1).sample(fields_of(name).every(), 150):
        assert TARGETS[name](change) != ""


# Smallest inputs of what the fuzzers found: the seed, where it was changed, and to what
@pytest.mark.parametrize(
    ("name", "seed", "place", "byte"),
    [
        ("parquet", 4, 140, b"6"),  # a column's histogram is too long: Arrow ended the process (plan_blocks)
        ("parquet", 2, 324, b"\x95"),  # a column's name is no UTF-8: UnicodeDecodeError
        ("features, parquet", 0, 127, b"O"),  # a category outside of the dictionary: ArrowIndexError
    ],
)
def test_finding__stays_mended(name, seed, place, byte):
    content = bytearray(TARGETS[name].seeds()[seed])
    content[place : place + 1] = byte
    assert TARGETS[name](bytes(content)) != ""
