"""Copies of the most frequent words in all partitions: their sums, their mean, and the rows that become the mean."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import chisquare

from daskw2v import Params, train
from daskw2v.errors import ParameterError
from daskw2v.kernels.alias import alias_table
from daskw2v.objectives.base import INPUT, OUTPUT
from daskw2v.sampling.pairs import WindowSize, distribute_pairs, unpack
from daskw2v.sampling.segments import Segment
from daskw2v.sampling.weights import word_weights
from daskw2v.store.storage import Store
from daskw2v.training.rotation.bucket_task import OutputPartition, RotationContext
from daskw2v.training.rotation.copies import average_copies, set_copies, sum_copies
from daskw2v.vocabulary.partition import Partitions
from tests.support.rotation import PARAMS, RESOURCES, Stop, write_topics

N_WORDS, N, N_COPIED, D = 23, 4, 5, 3


@pytest.fixture
def context():
    params = Params(strategy="rotation", n_partitions=N, n_groups=2, copied_words=N_COPIED, vector_size=D)
    counts = np.arange(N_WORDS, 0, -1) ** 3 * 1000
    partitions = Partitions(N_WORDS, N, N_COPIED)
    vocabulary = SimpleNamespace(read_counts=lambda start, stop: counts[start:stop])
    stored = SimpleNamespace(read=lambda k: counts[partitions.words(k)])
    return RotationContext(SimpleNamespace(params=params, vocabulary=vocabulary), partitions, stored, None)


@pytest.fixture
def rows():
    """The rows of each partition, padded to 16 columns."""
    rng, partitions = np.random.default_rng(0), Partitions(N_WORDS, N, N_COPIED)
    return {k: rng.normal(size=(N_COPIED + partitions.size(k), 16)).astype(np.float32) for k in range(N)}


@pytest.mark.parametrize("holders", [[[0, 1, 2, 3]], [[0, 1], [2, 3]], [[2, 3], [0, 1]], [[1], [0], [3], [2]]])
def test_average_copies__is_the_mean_of_all_copies_whoever_holds_them(context, rows, holders):
    if len(holders) == N:  # groups of one partition
        context.run.params = context.run.params.replace(n_groups=N)
    sums = [sum_copies(context, INPUT, {k: rows[k] for k in held}) for held in holders]
    expected = np.mean([rows[k][:N_COPIED, :D] for k in range(N)], axis=0, dtype=np.float64)
    np.testing.assert_array_equal(average_copies(context, sums), expected.astype(np.float32))


@pytest.mark.parametrize("in_files", [False, True])
@pytest.mark.parametrize("table", [INPUT, OUTPUT])
def test_set_copies__changes_copies_and_the_copied_words_own_rows_alone(context, rows, table, in_files):
    mean, words = np.full((N_COPIED, D), 7, np.float32), np.zeros(3, np.uint64)
    held = {k: OutputPartition(part, words) if table == OUTPUT else part for k, part in rows.items()}
    changed = set_copies(context, table, held, mean, Store("memory://copies") if in_files else None)
    for k, before in rows.items():
        np.testing.assert_array_equal(context.copies(table, k, changed[k]), mean)
        own = context.partitions.words(k)
        expected = np.where((own < N_COPIED)[:, None], 7, before[N_COPIED:, :D])
        np.testing.assert_array_equal(context.rows(table, k, changed[k]), expected)
        assert np.any(before[:N_COPIED, :D] != 7), "the earlier rows are another task's"


def test_read_counts__give_a_copied_word_the_weight_of_the_word(context):
    weights = np.zeros(N_WORDS)
    for k in range(N):
        in_partition = word_weights(context.read_counts(k), None)
        weights[:N_COPIED] += in_partition[:N_COPIED]
        weights[context.partitions.words(k)] += in_partition[N_COPIED:]
        alias_table(in_partition)  # which own rows of copied words, of weight 0, do not disturb
    np.testing.assert_allclose(weights, word_weights(np.arange(N_WORDS, 0, -1) ** 3 * 1000, None), rtol=1e-3)


def test_distribute_pairs__draws_a_partition_for_each_occurrence_of_a_copied_word():
    """Each pair is in one bucket, with the row of the copy or the row of the word behind the copies."""
    n, rng = 6000, np.random.default_rng(1)
    tokens = rng.integers(0, N_WORDS, n).astype(np.int32)
    segment = Segment(tokens, np.arange(n, dtype=np.int64), np.array([0, n]))
    partitions, windows = Partitions(N_WORDS, N, N_COPIED), WindowSize(1, False, np.uint64(1))
    dealt = distribute_pairs(segment, 0, n, windows, partitions, copies=np.uint64(5))
    words = [np.concatenate([np.arange(N_COPIED), partitions.words(k)]) for k in range(N)]
    found, of_copies = [], np.zeros((N_COPIED, N), int)
    for bucket, (first, last) in enumerate(itertools.pairwise(dealt.edges)):
        output, input = divmod(bucket, N)
        contexts, centers = unpack(dealt.entries[first:last])
        assert np.all(words[input][contexts[contexts >= N_COPIED]] >= N_COPIED), "own rows of copied words are unused"
        found += zip(words[output][centers], words[input][contexts], strict=True)
        copied = contexts < N_COPIED
        np.add.at(of_copies, (contexts[copied], input), 1)
    expected = [*itertools.pairwise(tokens), *((b, a) for a, b in itertools.pairwise(tokens))]
    assert sorted(found) == sorted(expected)
    assert chisquare(of_copies.ravel() / 2, np.repeat(of_copies.mean(1) / 2, N)).pvalue > 1e-4


def test_copied_words__are_the_same_after_a_checkpoint(client, tmp_path):
    """The copies of a run that goes on are the words' rows in the checkpoint."""
    text, params = write_topics(tmp_path / "text.txt"), PARAMS.replace(copied_words=9)
    whole = train(text, work=tmp_path / "a", params=params, resources=RESOURCES, client=client)

    def stop(progress):
        if progress.stage == "train" and progress.done > 0.6 * progress.total:
            raise Stop

    eager = RESOURCES.replace(checkpoint_seconds=0)
    with pytest.raises(Stop):
        train(text, work=tmp_path / "b", params=params, resources=eager, client=client, listener=stop)
    resumed = train(text, work=tmp_path / "b", params=params, resources=eager, client=client)
    np.testing.assert_array_equal(resumed.vectors[:], whole.vectors[:])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"objective": "sg_hs"}, "copied_words=3 has no kernel for objective='sg_hs'"),
        ({"negative_rule": "sns"}, "negative_rule='sns'.*Leave copied_words out"),
        ({"ns_exponent": 0.0}, "copied_words=3 needs an ns_exponent above 0; it is 0.0"),
    ],
)
def test_copied_words__are_refused_where_no_kernel_has_them(settings, message):
    with pytest.raises(ParameterError, match=message):
        Params(strategy="rotation", copied_words=3, **settings)


def test_copied_words__are_words_of_the_vocabulary():
    with pytest.raises(ParameterError, match=r"copied_words=9 of 5 words.*from 0 to 5"):
        Partitions(5, 2, 9)
