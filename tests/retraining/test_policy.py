"""How a version after the first is trained, where a policy leaves it open."""

import pytest

from daskw2v import Params, Policy
from daskw2v.training.preparation.planned import settled_params
from daskw2v.training.watch.stopping_settings import get_monitor

SUBWORDS = {"objective": "subwords", "strategy": "columns"}


SETTLED = settled_params(Params(strategy="averaging"))


@pytest.mark.parametrize(
    ("params", "policy", "rate", "epochs", "anchor"),
    [
        ({}, {}, 1, 3, 1 - 0.1**0.7),
        ({"epochs": 2}, {}, 1, 2, 1 - 0.1**0.7),
        (SUBWORDS, {}, 0.5, 3, 0),  # its network makes the rows
        ({}, {"anchor": 0.0}, 0.5, 3, 0),
        ({}, {"anchor": 0.3, "epochs": 7}, 1, 7, 0.3),
    ],
)
def test_policy__leaves_open_what_is_best_known(params, policy, rate, epochs, anchor):
    params = settled_params(Params(**{"strategy": "averaging", **params}))
    actual = Policy(**policy).params_after(params, "v0001-a", 0.1)
    assert actual.alpha == pytest.approx(rate * params.alpha)
    assert (actual.start.version, actual.epochs) == ("v0001-a", epochs)
    assert actual.start.anchor == pytest.approx(anchor, abs=1e-4)


def test_policy__of_little_new_text_still_moves_words():
    assert 0.99 < Policy().params_after(SETTLED, "v0001-a", 0.0005).start.anchor < 1


def test_policy__holds_nothing_out_where_nothing_is_new():
    params = SETTLED.replace(held_out=0.1, monitor="held_out_loss")
    for new, expected in ((0.1, (0.1, "held_out_loss")), (0.0, (0.0, None))):
        actual = Policy().params_after(params, "v0001-a", new)
        assert (actual.held_out, get_monitor(actual)) == expected
    actual = Policy().params_after(params.replace(monitor="similarity/a"), "v0001-a", 0.0)
    assert get_monitor(actual) == "similarity/a"


def test_policy__has_a_rate_of_its_own():
    assert Policy(alpha=0.01).params_after(SETTLED, "v0001-a", 0.1).alpha == 0.01
