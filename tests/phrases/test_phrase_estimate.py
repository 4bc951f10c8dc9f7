"""What the stage takes is told before: it grows with the text, and covers what the tasks make."""

from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.training.estimates.memory import estimate
from daskw2v.training.sizes import Text, Workers

PARAMS = Params(strategy="averaging", phrases=1)
TEXT = Text(
    words=10**9,
    types=4 * 10**6,
    subsampled=5 * 10**8,
    vocabulary=10**6,
    blocks=90,
    shards=90,
    shard_words=11 * 10**6,
    shard_types=200_000,
    entries=18 * 10**6,
)


def of(text, params=PARAMS, workers=None):
    return estimate(params, Resources(), text, workers or Workers(2, 2))


def test_estimate__has_a_stage_for_phrases_where_there_are_such():
    assert [stage.name for stage in of(TEXT).stages] == ["encode", "phrases", "vocabulary", "train", "publish"]
    assert "phrases" not in [stage.name for stage in of(TEXT, Params(strategy="averaging")).stages]
    assert all(size > 0 for size in of(TEXT)["phrases"].worker.values())


@given(st.sampled_from([f.name for f in fields(Text)]), st.floats(1, 100))
def test_estimate__never_falls_as_text_grows(name, factor):
    larger = replace(TEXT, **{name: int(getattr(TEXT, name) * factor)})
    assert of(TEXT)["phrases"].bytes <= of(larger)["phrases"].bytes


@pytest.mark.parametrize("threads", [1, 4])
def test_estimate__of_a_longer_text_is_the_same(threads):
    """More shards of the same size take more tasks, not more memory."""
    longer = replace(TEXT, words=10**12, shards=90_000, blocks=90_000, types=10**8, entries=10**10)
    workers = Workers(1, threads)
    assert of(TEXT, workers=workers)["phrases"] == of(longer, workers=workers)["phrases"]
