"""A matrix that goes on from another one is, in distribution, the one that all text together gives."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from daskw2v import Params, Resources
from daskw2v.errors import InputError, ParameterError, StoreError, VocabularyError
from daskw2v.kernels.rng import Purpose, stream
from daskw2v.sampling import context_matrix
from daskw2v.sampling.context_matrix import build_matrix, read_contexts
from daskw2v.sampling.reservoir import merge_rows
from daskw2v.sampling.run import Run
from daskw2v.stages import Store, build_corpus, build_vocabulary
from daskw2v.store.arrays import read_array

KEY = stream(5, Purpose.GROWTH, 1)
SIZE, CENTERS = 20, 300
PARAMS = Params(objective="context_matrix", min_count=1, sample=0, window=1, context_size=SIZE)
# Each of the centers meets `n` contexts of the text's own, once each.
PARTS = {
    name: [f"c{i} {name}{j}" for j in range(n) for i in range(CENTERS)]
    for name, n in (("a", 30), ("b", 60), ("d", 25), ("e", 40))
}
PARTS["b"] += [f"c{i}" for i in range(CENTERS) for _ in range(i % 7)]  # no pairs, but another order of ids
PARTS["e"] += [f"a{j} a{j}" for j in range(30)]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("growth")
    for name, lines in PARTS.items():
        (folder / name).write_text("\n".join(lines) + "\n")
    return folder


@pytest.fixture(scope="module")
def make(client, files):
    """Build the matrix of some parts of the text, by Params with changes; return it and the run."""

    def make(parts, base=None, **changes):
        params = PARAMS.replace(base_matrix=None if base is None else base.name, **changes)
        store, resources = Store(str(files / "work")), Resources(block_size="32 KiB")
        corpus = build_corpus([files / part for part in parts], store, params, resources, client)
        vocabulary = build_vocabulary(corpus, store, params, resources, client)
        run = Run(store, corpus.name, vocabulary, params, "cpu")
        return build_matrix(client, run), run

    return make


def rows_of(matrix, run):
    """Return the contexts of each center as words, and its number of pairs."""
    words, contexts = run.vocabulary.load().words, read_contexts(matrix.group, (0, matrix.words), (0, SIZE))
    seen = read_array((matrix.folder / matrix.folder.read_manifest()["build"] / "matrix").open_group(), "seen")
    ids = {word: id_ for id_, word in enumerate(words)}
    rows = np.array([[words[context] for context in contexts[ids[f"c{i}"]]] for i in range(CENTERS)])
    return rows, {word: int(seen[id_]) for word, id_ in ids.items()}


def chance(rows, name, n, total):
    """Return the p-value of how often each row holds a text with n of `total` pairs: draws without replacement."""
    actual = np.bincount(np.char.startswith(rows, name).sum(axis=1), minlength=SIZE + 1)
    expected = stats.hypergeom(total, n, SIZE).pmf(np.arange(SIZE + 1)) * len(rows)
    common = expected > 5
    binned = [np.append(values[common], values[~common].sum()) for values in (actual, expected)]
    return stats.chisquare(*binned).pvalue


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_grown_matrix__is_distributed_as_a_rebuilt_one(make, monkeypatch, seed):
    monkeypatch.setattr(context_matrix, "PAIRS", 3000)
    monkeypatch.setattr(context_matrix, "BAND", 50 * SIZE)
    first, _ = make("a", seed=seed)
    second, run = make("ab", first, seed=seed)
    third, all_run = make("abd", second, seed=seed + 50)
    rebuilt, _ = make("abd", seed=seed)
    rows, seen = rows_of(second, run)
    assert chance(rows, "a", 30, 90) > 0.01
    for matrix in (third, rebuilt):
        rows, all_seen = rows_of(matrix, all_run)
        assert all(len(set(row)) == SIZE for row in rows)
        for name, n in (("a", 30), ("b", 60), ("d", 25)):
            assert chance(rows, name, n, 115) > 1e-3
            for column in (0, 7, SIZE - 1):  # the order is random too
                hits = int(np.char.startswith(rows[:, column], name).sum())
                assert stats.binomtest(hits, CENTERS, n / 115).pvalue > 1e-4  # of 54
        one = np.char.replace(rows[np.char.startswith(rows, "b")], "b", "").astype(int)
        assert stats.chisquare(np.bincount(one)).pvalue > 0.005
    assert all_seen == rows_of(third, all_run)[1]
    assert seen["c7"] == 90
    assert third.pairs == rebuilt.pairs == 2 * 115 * CENTERS
    assert third.text_words == rebuilt.text_words > third.pairs
    assert len({matrix.name for matrix in (first, second, third, rebuilt)}) == 4


@pytest.mark.slow
def test_grown_matrix__does_not_depend_on_how_the_work_is_cut(make, monkeypatch, client):
    first, _ = make("a", seed=9)
    grown, run = make("ab", first, seed=9)
    rows, seen = rows_of(grown, run)
    grown.folder.remove()
    monkeypatch.setattr(context_matrix, "PAIRS", 3333)
    monkeypatch.setattr(context_matrix, "BAND", 64 * SIZE)
    again = build_matrix(client, run)
    np.testing.assert_array_equal(rows_of(again, run)[0], rows)
    assert rows_of(again, run)[1] == seen


@pytest.mark.slow
def test_grown_matrix__takes_new_files_alone(make):
    """The second text has all words of the first, which it is not read with; and a third one follows both."""
    first, _ = make("a")
    second, run = make("e", first)
    rows, seen = rows_of(second, run)
    assert chance(rows, "a", 30, 70) > 0.01
    assert (seen["c0"], seen["a3"], seen["e3"]) == (70, CENTERS + 2, CENTERS)
    third, run = make("aed", second)
    _, seen = rows_of(third, run)
    assert (seen["c0"], seen["a3"], seen["e3"], seen["d3"]) == (95, CENTERS + 2, CENTERS, CENTERS)
    none, run = make("aed", third)  # nothing is new: the same rows
    np.testing.assert_array_equal(rows_of(none, run)[0], rows_of(third, run)[0])
    assert none.pairs == third.pairs
    assert none.name != third.name
    with pytest.raises(InputError, match=r"does not begin with all of that text \(2 files"):
        make("ed", second)


def test_grown_matrix__draws_anew(make, files):
    """The same text once more, in another file: its priorities must not be those of the same positions before."""
    (files / "g").write_text((files / "a").read_text())
    first, _ = make("a")
    rows, _ = rows_of(*make("g", first))
    distinct = np.mean([len(set(row)) for row in rows])
    assert abs(distinct - (SIZE - SIZE * (SIZE - 1) / 2 / 59)) < 0.4  # of 60 pairs, each context in two


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"context_size": 19}, "context_size=19, but base_matrix='.*' was made with 20"),
        ({"window": 2}, "window=2, but base_matrix"),
        ({"shrink_windows": False}, "shrink_windows=False, but base_matrix"),
        ({"sample": 0.5}, r"sample=0\.5, but base_matrix"),
        ({"context_sample": 0.5}, r"context_sample=0\.5, but base_matrix='\w+' was made with 0\.0"),
    ],
)
def test_base__made_by_other_rules_is_refused(make, change, message):
    first, _ = make("a")
    with pytest.raises(ParameterError, match=message):
        make("ab", first, **change)


@pytest.mark.parametrize("parts", ["ba", "da", "dab"])
def test_base__whose_text_is_not_at_the_front_is_refused(make, parts):
    first, _ = make("a")
    with pytest.raises(InputError, match=r"/a is in the text of base_matrix.*Give the base's files first"):
        make(parts, first)


@pytest.mark.parametrize("change", [{"tokenizer": "lower"}, pytest.param({"errors": "skip"}, marks=pytest.mark.slow)])
def test_base__whose_text_was_read_otherwise_is_refused(make, change):
    first, _ = make("a")
    with pytest.raises(InputError, match="read by the same rules and unchanged"):
        make("ab", first, **change)


def test_base__whose_text_changed_is_refused(make, files):
    (files / "f").write_text("c0 c1\n")
    first, _ = make("f")
    (files / "f").write_text("c0 c1\nc0 c2\n")
    with pytest.raises(InputError, match="/f is in the text of base_matrix"):
        make("fa", first)


def test_base__with_words_that_are_missing_is_refused(make):
    first, _ = make("a")
    with pytest.raises(
        VocabularyError, match=r"30 of 330 words of the base matrix are not in the vocabulary, such as 'a"
    ):
        make("b", first)


def test_base__that_does_not_exist_is_refused(make):
    first, _ = make("a")
    with pytest.raises(StoreError, match="/none holds no finished word-context matrix"):
        make("ab", replace(first, folder=Store("none")))


@given(st.integers(0, 12), st.integers(1, 12), st.integers(1, 10), st.integers(0, 2**40))
def test_merge_rows__takes_both_in_their_order(n_new, n_old, size, first):
    """Old pairs are 100, 101 ...; new ones 0, 1 ..."""
    contexts = np.full((3, size), -1, np.int32)
    contexts[1, : min(size, n_new)] = np.arange(min(size, n_new))
    old, seen = np.full((1, size), -1, np.int32), np.array([0, n_new, 5])
    old[0, : min(size, n_old)] = 100 + np.arange(min(size, n_old))
    merge_rows(contexts, seen, first, np.array([[first + 1, n_old]]), old, KEY)
    total = n_new + n_old
    row = contexts[1, : min(total, size)]
    assert seen.tolist() == [0, total, 5]
    assert row[row < 100].tolist() == list(range((row < 100).sum()))
    assert row[row >= 100].tolist() == list(range(100, 100 + (row >= 100).sum()))
    assert (contexts[1, total:] == -1).all()
    assert (contexts[[0, 2]] == -1).all()


@pytest.mark.parametrize(("n_old", "n_new"), [(3, 50), (40, 40), (2**40, 2**41), (10, 1000)])
def test_merge_rows__weighs_by_pairs_not_by_what_was_kept(n_old, n_new):
    rows, size = 4000, 6
    contexts = np.tile(np.arange(size, dtype=np.int32), (rows, 1))
    old = np.tile(np.arange(100, 100 + size, dtype=np.int32), (rows, 1))
    old[:, n_old:] = -1
    seen = np.full(rows, n_new)
    merge_rows(contexts, seen, 0, np.column_stack([np.arange(rows), np.full(rows, n_old)]), old, KEY)
    assert (seen == n_old + n_new).all()
    assert (contexts >= 0).all()
    share = n_old / (n_old + n_new)
    for column in range(size):
        assert stats.binomtest(int((contexts[:, column] >= 100).sum()), rows, share).pvalue > 0.005
    taken = (contexts >= 100).sum(axis=1)
    variance = size * share * (1 - share) * (1 - (size - 1) / (n_old + n_new - 1))
    assert abs(taken.mean() - size * share) < 3 * np.sqrt(variance / rows)
    assert abs(taken.var() / variance - 1) < 0.25
