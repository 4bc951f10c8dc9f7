"""Sixteen threads that have a core each: they learn what one thread learns, and no more than sixteen do."""

from dataclasses import replace

import pytest

from daskw2v.config.params import Params
from daskw2v.kernels.simd import padded
from daskw2v.objectives.base import Rate
from daskw2v.objectives.registry import OBJECTIVES, settle_params
from daskw2v.training.devices import Threads
from daskw2v.training.devices.settings import CPU
from tests.support.lockstep import first_tables, train_in_step
from tests.support.zipf import zipf_counts, zipf_segment

WORDS, TOKENS, SIZE = 1000, 100_000, 16
HOGWILD = [name for name, objective in OBJECTIVES.items() if "cpu" in objective.trainers]


@pytest.fixture
def loss_of():
    """What trains a text once, and returns the mean loss of an example."""
    counts = zipf_counts(WORDS, TOKENS)

    def train(name, threads, **changes):
        objective, params = (
            replace(OBJECTIVES[name], **changes),
            settle_params(Params(objective=name, vector_size=SIZE)),
        )
        tables, width = first_tables(objective, params, WORDS), padded(SIZE)
        text, rate = zipf_segment(counts, TOKENS, 1e-3), Rate(params.alpha, 0.0, 0)
        prepared = objective.prepare(params, counts)
        examples, loss = train_in_step(objective, prepared, tables, width, threads, text, rate)
        return loss / examples

    return train


@pytest.mark.parametrize("name", HOGWILD)
def test_threads__in_step_learn_what_one_learns(loss_of, name):
    """With the package's numbers of hot rows, and of centers from flush to flush."""
    one = loss_of(name, Threads(1, CPU()))
    assert loss_of(name, Threads(2, CPU())) == pytest.approx(one, rel=0.02)
    assert loss_of(name, Threads(16, CPU())) == pytest.approx(one, rel=0.06)


@pytest.mark.parametrize("name", HOGWILD)
def test_threads__that_flush_too_seldom_diverge(loss_of, name):
    """What the numbers above are chosen against: 512 centers, as two threads may have, are too many for sixteen."""
    assert loss_of(name, Threads(16, CPU()), flush_words=16 * 512) > 2 * loss_of(name, Threads(1, CPU()))
