"""Two stages draw what one table draws; each rule draws from the partitions that it is named for."""

import numpy as np
import pytest
from scipy.stats import chi2_contingency, chisquare

from daskw2v.kernels.alias import alias_table
from daskw2v.kernels.jit import kernel
from daskw2v.kernels.rng import Purpose, draw, stream
from daskw2v.sampling.hierarchy import BNS, SNS, TNS, draw_negative_row, draw_partition, make_word_table
from daskw2v.sampling.weights import word_weights
from daskw2v.vocabulary.partition import Partitions

PAIRS, NEGATIVE, EXPONENT = 400_000, 5, 0.75


@kernel
def draw_all(rule, key, targets, partitions, tables, starts, n):
    """Return the partition and the row of each of n negatives of each pair; `tables` holds one behind the other."""
    actual = np.empty((2, len(targets), n), np.int64)
    for i in range(len(targets)):
        state = draw(key, i)
        for k in range(n):
            part = draw_partition(rule, state, k, targets[i], partitions)
            actual[0, i, k] = part
            actual[1, i, k] = draw_negative_row(state, k, tables[starts[part] : starts[part + 1]])
    return actual


@pytest.fixture(scope="module")
def noise():
    """A vocabulary of Zipf's law in 7 partitions: it, the counts, the weights, and both tables."""
    counts = (1e6 / np.arange(1, 501)).astype(np.int64)
    partitions, weights = Partitions(len(counts), 7), word_weights(counts, EXPONENT)
    tables = [make_word_table(counts[partitions.words(k)], EXPONENT) for k in range(7)]
    sums = np.array([weights[partitions.words(k)].sum() for k in range(7)])
    return partitions, weights, sums, alias_table(sums), tables


def draws_of(noise, rule, seed=1):
    """Return targets' partitions, negatives' partitions and negatives' words, shapes (pairs,) and twice (pairs, k)."""
    partitions, _, _, table, tables = noise
    targets = np.random.default_rng(seed).integers(0, partitions.n, PAIRS)
    starts = np.concatenate([[0], np.cumsum([len(t) for t in tables])])
    key = stream(seed, Purpose.NEGATIVE)
    parts, rows = draw_all(rule, key, targets, table, np.concatenate(tables), starts, NEGATIVE)
    words = np.empty_like(rows)
    for k in range(partitions.n):
        words[parts == k] = partitions.words(k)[rows[parts == k]]
    return targets, parts, words


def test_two_stages__draw_as_the_flat_table_does(noise, pick_many):
    """Two million draws of each, against the weights and against each other."""
    _, weights, *_ = noise
    words = draws_of(noise, BNS)[2]
    seen = np.bincount(words.ravel(), minlength=len(weights))
    assert chisquare(seen, words.size * weights / weights.sum()).pvalue > 1e-4
    flat = pick_many(alias_table(weights), stream(2, Purpose.NEGATIVE), words.size)
    assert chi2_contingency([seen, flat]).pvalue > 1e-4


def test_tns__draws_from_the_partition_of_the_target_by_its_own_weights(noise):
    partitions, weights, *_ = noise
    targets, parts, words = draws_of(noise, TNS)
    assert (parts == targets[:, None]).all()
    for k in range(partitions.n):
        own = partitions.words(k)
        seen = np.bincount(words[targets == k].ravel(), minlength=len(weights))
        assert seen.sum() == seen[own].sum()
        assert chisquare(seen[own], seen.sum() * weights[own] / weights[own].sum()).pvalue > 1e-4


def test_sns__draws_all_negatives_of_a_pair_from_one_partition_whatever_its_target(noise):
    partitions, weights, sums, *_ = noise
    targets, parts, words = draws_of(noise, SNS)
    assert (parts == parts[:, :1]).all()
    assert chisquare(np.bincount(parts[:, 0]), PAIRS * sums / sums.sum()).pvalue > 1e-4
    table = np.zeros((partitions.n, partitions.n))
    np.add.at(table, (targets, parts[:, 0]), 1)
    assert chi2_contingency(table).pvalue > 1e-4, "target and partition are independent"
    seen = np.bincount(words[:, 0], minlength=len(weights))
    assert chisquare(seen, PAIRS * weights / weights.sum()).pvalue > 1e-4


def test_bns__draws_each_negative_from_a_partition_of_its_own(noise):
    partitions, _, sums, *_ = noise
    _, parts, _ = draws_of(noise, BNS)
    assert chisquare(np.bincount(parts.ravel()), parts.size * sums / sums.sum()).pvalue > 1e-4
    for a, b in ((0, 1), (1, 4)):
        table = np.zeros((partitions.n, partitions.n))
        np.add.at(table, (parts[:, a], parts[:, b]), 1)
        assert chi2_contingency(table).pvalue > 1e-4, "negatives of a pair are independent"


def test_tables__hold_a_row_for_each_partition_and_each_word_of_one(noise):
    partitions, weights, _, table, tables = noise
    assert len(table) == partitions.n
    assert [len(t) for t in tables] == [partitions.size(k) for k in range(partitions.n)]
    assert sum(len(t) for t in tables) == len(weights)
