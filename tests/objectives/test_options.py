"""Options that an objective reads, and options that are refused because it does not read them."""

import pytest

from daskw2v.config.params import Params
from daskw2v.errors import ParameterError
from daskw2v.objectives.registry import (
    OBJECTIVES,
    check_options,
    find_objective,
    find_trainer,
    settle_params,
    start_alpha,
)
from tests.support.refusals import refusal

ALL = sorted(OBJECTIVES)


@pytest.mark.parametrize("objective", ALL)
def test_check_options__accepts_defaults(objective):
    assert refusal(check_options, Params(objective=objective)) is None


@pytest.mark.parametrize(
    ("objective", "options"),
    [
        ("sgns", {"negative": 7, "ns_exponent": 0.5, "negative_sharing": "pair"}),
        ("cbow_ns", {"negative": 7, "ns_exponent": 0.5, "negative_sharing": "pair", "cbow_mean": False}),
        ("cbow_hs", {"cbow_mean": False}),
        ("context_matrix", {"negative": 7, "context_size": 10, "base_matrix": "a", "optimizer": "sgd"}),
        ("context_matrix", {"ns_exponent": 0.5, "context_sample": 1e-3}),
    ],
)
def test_check_options__accepts_options_of_the_objective(objective, options):
    params = Params(objective=objective, **options)
    assert refusal(check_options, params) is None
    assert params.flat().items() >= options.items()


@pytest.mark.parametrize(
    ("objective", "name", "value", "users"),
    [
        ("sgns", "cbow_mean", False, "cbow_ns, cbow_hs"),
        ("sg_hs", "negative", 7, "sgns, cbow_ns, context_matrix, subwords"),
        ("sgns", "context_sample", 1e-3, "context_matrix, subwords"),
        ("sg_hs", "cbow_mean", False, "cbow_ns, cbow_hs"),
        ("cbow_hs", "ns_exponent", 1.0, "sgns, cbow_ns, context_matrix, subwords"),
        ("cbow_hs", "negative_sharing", "pair", "sgns, cbow_ns"),
    ],
)
def test_check_options__refuses_options_that_change_nothing(objective, name, value, users):
    with pytest.raises(ParameterError) as caught:
        Params(objective=objective, **{name: value})
    assert f"{name}={value!r} changes nothing for objective={objective!r}; it is for {users}." in caught.value.problem
    assert f"Leave {name} out" in caught.value.remedy


def test_check_options__refuses_an_objective_that_does_not_exist():
    with pytest.raises(ParameterError, match=r"objective='glove' does not exist.*sgns.*cbow_hs"):
        check_options(Params(objective="glove"))


@pytest.mark.parametrize("objective", ALL)
def test_start_alpha__is_the_default_of_the_objective_unless_passed(objective):
    for optimizer, alpha in find_objective(objective).alphas.items():
        assert start_alpha(Params(objective=objective, optimizer=optimizer)) == alpha > 0
    assert settle_params(Params(objective=objective)).optimizer == next(iter(find_objective(objective).alphas))
    assert start_alpha(Params(objective=objective, alpha=0.125)) == 0.125


@pytest.mark.parametrize("objective", [name for name in ALL if find_objective(name).trainers])
def test_find_trainer__lists_objectives_and_devices(objective):
    result = find_objective(objective)
    assert find_trainer(result, "cpu") is result.trainers["cpu"]
    with pytest.raises(ParameterError, match=rf"'{objective}' has no kernel for device='abacus'") as caught:
        find_trainer(result, "abacus")
    assert all(f"{name} on cpu" in caught.value.remedy for name in ALL if find_objective(name).trainers)
