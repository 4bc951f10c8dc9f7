"""Whole runs in a store that fails, answers late or with what was there before: the bits of a store that does not."""

import numpy as np
import pytest

from daskw2v import Params, Resources, Vectors, Versions, train
from daskw2v.errors import Daskw2vError
from tests.support.unreliable import FAULTS, Fault, unreliable

PARAMS = Params(vector_size=8, min_count=1, epochs=2, sample=1e-2, n_replicas=2, rounds_per_epoch=2)
RESOURCES = Resources(threads=1, block_size="2 KiB", checkpoint_seconds=0)
WORK = "unreliable://Work"
pytestmark = pytest.mark.usefixtures("no_pauses")


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path, rng = tmp_path_factory.mktemp("text") / "text.txt", np.random.default_rng(0)
    path.write_text("\n".join(" ".join(f"w{w}" for w in rng.zipf(1.3, 10) % 200) for _ in range(150)))
    return path


@pytest.fixture(scope="module")
def expected(text, tmp_path_factory, client):
    work = tmp_path_factory.mktemp("work")
    return train(text, work=work, params=PARAMS, resources=RESOURCES, client=client, listener=None).vectors[:]


def trained(*args, **options):
    """Give the same command again where it ends with an error of ours, as it may where answers are old."""
    for _ in range(3):
        try:
            return train(*args, **options)
        except Daskw2vError as error:
            messages = error
    raise messages


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", FAULTS)
def test_train__in_a_store_that_is_not_reliable_gives_the_same_bits(text, expected, client, name):
    fault = FAULTS[name]()
    with unreliable(fault):
        vectors = trained(text, work=WORK, params=PARAMS, resources=RESOURCES, client=client, listener=None)
        assert fault.struck > 3
        np.testing.assert_array_equal(vectors.vectors[:], expected)
        np.testing.assert_array_equal(Vectors.open(WORK).vectors[:], expected)
        again = train(text, work=WORK, params=PARAMS, resources=RESOURCES, client=client, listener=None)
        assert again.url == vectors.url
        actual = [Versions.open(WORK).all() for _ in range(3)][-1]  # listings may lag
        assert [version.served for version in actual] == [True]


@pytest.mark.slow
def test_names__that_differ_by_case_alone_are_one_file_nowhere(text, expected, client):
    """As on macOS and Windows: tags and tokenizers may differ so, files may not."""
    with unreliable(Fault(), fold_case=True):
        vectors = train(text, work=WORK, params=PARAMS, resources=RESOURCES, client=client, listener=None)
        np.testing.assert_array_equal(vectors.vectors[:], expected)
        for tokenizer in ("regex:W", "regex:w"):
            params = PARAMS.replace(tokenizer=tokenizer + r"?\w+")
            train(text, work=WORK, params=params, resources=RESOURCES, client=client, listener=None)
        versions = Versions.open(WORK)
        for tag, version in zip(("Best", "best", "BEST"), versions.all(), strict=True):
            versions.tag(version.name, tag)
        assert [version.tags for version in Versions.open(WORK).all()] == [("Best",), ("best",), ("BEST",)]
