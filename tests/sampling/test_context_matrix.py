"""The word-context matrix: its definition by brute force, and that nothing but Params and text changes it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from distributed import Client
from scipy import stats

from daskw2v import Params, Resources
from daskw2v.errors import DamageError, StoreError
from daskw2v.kernels.rng import Purpose, draws, mix, stream
from daskw2v.sampling import context_matrix
from daskw2v.sampling.context_matrix import build_matrix, find_matrix, read_base, read_contexts
from daskw2v.sampling.run import Run
from daskw2v.sampling.segments import keep_thresholds
from daskw2v.sampling.settings import SampledContexts
from daskw2v.stages import Store, build_corpus, build_vocabulary
from daskw2v.store.arrays import open_array, read_array

PARAMS = Params(objective="context_matrix", min_count=2, sample=1e-2, window=3, context_size=20)
RNG = np.random.default_rng(0)
LINES = [" ".join(f"w{w}" for w in RNG.zipf(1.3, RNG.integers(1, 40)) if w < 300) for _ in range(400)]
HUGE = [" ".join(LINES[:100])]  # one sentence


def run_of(client, folder, texts, params, block="64 MiB"):
    """Encode texts, each a list of lines and a file."""
    paths = []
    for i, lines in enumerate(texts):
        paths.append(folder / f"{i}.txt")
        if not paths[-1].exists():
            paths[-1].write_text("\n".join(lines) + "\n")
    store, resources = Store(str(folder / "work")), Resources(block_size=block)
    corpus = build_corpus(paths, store, params, resources, client)
    return Run(store, corpus.name, build_vocabulary(corpus, store, params, resources, client), params, "cpu")


@pytest.fixture(scope="module")
def run(client, tmp_path_factory):
    return run_of(client, tmp_path_factory.mktemp("matrix"), [LINES], PARAMS)


def contexts_of(matrix):
    return read_contexts(matrix.group, (0, matrix.words), (0, matrix.context_size))


def seen_of(matrix):
    manifest = matrix.folder.read_manifest()
    return read_array((matrix.folder / manifest["build"] / "matrix").open_group(), "seen")


def draw_of(key, counters):
    return draws(key, np.array(counters, np.uint64))


def rows_of(lines, vocabulary, params):
    """All pairs by plain loops over the text: of each word its contexts, by rising priority."""
    keep, keep_context = (
        keep_thresholds(vocabulary.counts, s) for s in (params.sample, SampledContexts.of(params).context_sample)
    )
    subsample, shrink, priorities = (
        stream(params.seed, p) for p in (Purpose.SUBSAMPLE, Purpose.WINDOW, Purpose.MATRIX)
    )
    actual = {word: ([], []) for word in range(len(vocabulary))}
    position = 0
    for line in lines:
        sentence = []
        for token in line.split():
            word = vocabulary.find(token)
            if word is not None and draw_of(subsample, [position])[0] >> np.uint64(32) < keep[word]:
                sentence.append((position, word))
            position += 1
        for i, (at, word) in enumerate(sentence):
            drawn = int(draw_of(shrink, [at])[0] >> np.uint64(32)) * params.window >> 32
            reach = params.window - drawn * params.shrink_windows
            for j in range(max(0, i - reach), min(len(sentence), i + reach + 1)):
                counter, context = at * (2 * params.window + 1) + j - i + params.window, sentence[j][1]
                if j != i and draw_of(priorities, [counter])[0] & np.uint64(2**32 - 1) < keep_context[context]:
                    actual[word][0].append(context)
                    actual[word][1].append(counter)
    rows = []
    for contexts, counters in actual.values():
        priority = draw_of(priorities, counters) >> np.uint64(32)
        masked = np.array(contexts, np.uint64) ^ (mix.py_func(priority) & np.uint64(2**32 - 1))
        rows.append(np.array(contexts, np.int32)[np.lexsort([masked, priority])])
    return rows


def cut_finely(monkeypatch, pairs, band, columns=6):
    monkeypatch.setattr(context_matrix, "PAIRS", pairs)
    monkeypatch.setattr(context_matrix, "BAND", band)
    monkeypatch.setattr(context_matrix, "ROWS", 8)
    monkeypatch.setattr(context_matrix, "COLUMNS", columns)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("lines", "changes"),
    [
        (LINES, {}),
        (LINES, {"shrink_windows": False, "sample": 0.0, "seed": 2**40}),
        pytest.param(LINES, {"context_size": 1}, marks=pytest.mark.slow),
        (LINES, {"context_size": 2000, "window": 1, "sample": 1e-3}),
        (HUGE, {"sample": 0.3, "window": 40}),
        (LINES, {"sample": 0.0, "context_sample": 1e-2}),
    ],
    ids=["default", "whole windows", "one column", "wider than all", "one sentence", "thinned contexts"],
)
def test_build_matrix__is_what_plain_loops_give(client, tmp_path, monkeypatch, lines, changes):
    params = PARAMS.replace(**changes)
    cut_finely(monkeypatch, 6000, 1 << 23, max(6, SampledContexts.of(params).context_size // 4))
    run = run_of(client, tmp_path, [lines], params, "16 KiB")
    vocabulary, matrix = run.vocabulary.load(), build_matrix(client, run)
    expected, contexts, seen = rows_of(lines, vocabulary, params), contexts_of(matrix), seen_of(matrix)
    assert contexts.dtype == np.int32
    assert contexts.shape == (len(vocabulary), SampledContexts.of(params).context_size)
    assert seen.tolist() == [len(row) for row in expected]
    assert matrix.pairs == seen.sum() > 3000
    assert matrix.text_words == vocabulary.counts.sum()
    for row, all_contexts in zip(contexts, expected, strict=True):
        n = min(len(all_contexts), SampledContexts.of(params).context_size)
        np.testing.assert_array_equal(row[:n], all_contexts[:n])
        if n < SampledContexts.of(params).context_size:  # each stretch of n columns is the same pairs, in some order
            whole = row[: SampledContexts.of(params).context_size // n * n].reshape(-1, n) if n else -row[row != -1]
            assert (np.sort(whole) == np.sort(row[:n])).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("workers", "n_files", "block", "pairs", "band"),
    [
        pytest.param(1, 1, "1 KiB", 2000, 160, marks=pytest.mark.slow),
        (2, 4, "4 KiB", 2500, 100),
        pytest.param(3, 16, "64 MiB", 2000, 1, marks=pytest.mark.slow),
    ],
)
def test_build_matrix__does_not_depend_on_how_the_work_is_cut(
    client, tmp_path, monkeypatch, workers, n_files, block, pairs, band
):
    (tmp_path / "whole").mkdir()
    params = PARAMS.replace(min_count=12)  # 56 words: there is a band for each
    expected = contexts_of(build_matrix(client, run_of(client, tmp_path / "whole", [LINES], params)))
    cut_finely(monkeypatch, pairs, band)
    folder = tmp_path / "cut"
    folder.mkdir()
    texts = [LINES[i * 400 // n_files : (i + 1) * 400 // n_files] for i in range(n_files)]
    other = run_of(client, folder, texts, params, block)
    with Client(processes=False, n_workers=workers, threads_per_worker=1, dashboard_address=":0") as cluster:
        matrix = build_matrix(cluster, other)
    np.testing.assert_array_equal(contexts_of(matrix), expected)
    assert not any(name in ("text", "base") for name in (matrix.folder / matrix.folder.children()[0]).children())
    group = (matrix.folder / matrix.folder.read_manifest()["build"] / "matrix").open_group()
    assert open_array(group, "contexts").shards[0] <= max(1, band // 20)


def test_build_matrix__has_an_empty_row_for_a_word_without_pairs(client, tmp_path):
    run = run_of(client, tmp_path, [["alone", "a b", "alone", "b a"]], PARAMS.replace(sample=0, context_size=5))
    matrix = build_matrix(client, run)
    words, contexts = run.vocabulary.load().words, contexts_of(matrix)
    assert contexts[words.index("alone")].tolist() == [-1] * 5
    assert contexts[words.index("a")].tolist() == [words.index("b")] * 5
    assert seen_of(matrix)[words.index("alone")] == 0


def test_build_matrix__samples_uniformly_without_replacement(client, tmp_path):
    """Of 500 words, each has 30 contexts once; 8 are kept."""
    words, contexts, size = 500, 30, 8
    lines = [f"c{i} x{j}" for j in range(contexts) for i in range(words)]
    params = Params(objective="context_matrix", min_count=1, sample=0, window=1, context_size=size)
    run = run_of(client, tmp_path, [lines], params)
    names, rows = run.vocabulary.load().words, contexts_of(build_matrix(client, run))
    ids = np.array([names.index(f"x{j}") for j in range(contexts)])
    places = np.full(len(names), -1)
    places[ids] = np.arange(contexts)
    rows = places[rows[[names.index(f"c{i}") for i in range(words)]]]
    assert (rows >= 0).all()
    assert all(len(set(row)) == size for row in rows)
    for column in (0, size - 1):
        assert stats.chisquare(np.bincount(rows[:, column], minlength=contexts)).pvalue > 0.01
    share = size / contexts
    deviation = np.bincount(rows.ravel(), minlength=contexts) - words * share
    # Counts of contexts that exclude each other: their variances are those of draws without replacement.
    statistic = (deviation**2).sum() / (words * share * (1 - share)) * (contexts - 1) / contexts
    assert 0.01 < stats.chi2(contexts - 1).sf(statistic) < 0.99


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 9},
        {"context_size": 21},
        {"window": 2},
        {"shrink_windows": False},
        {"sample": 0.5},
        {"context_sample": 0.01},
    ],
)
def test_build_matrix__has_a_name_for_all_that_changes_it(client, run, change):
    matrix = build_matrix(client, run)
    other = build_matrix(client, replace(run, params=PARAMS.replace(**change)))
    assert other.name != matrix.name
    assert not np.array_equal(contexts_of(other)[:, :20], contexts_of(matrix))


def test_build_matrix__that_is_there_is_not_made_again(client, run):
    params = PARAMS.replace(seed=77)
    reports = []
    matrix = build_matrix(client, replace(run, params=params), reports.append)
    first, *_, last, named = reports
    assert first.done == 0 < last.done == last.total == first.total
    assert named.message == f"word-context matrix {matrix.name}"
    again = []
    # What only training reads is no part of it.
    assert build_matrix(client, replace(run, params=params.replace(epochs=3, alpha=0.1)), again.append) == matrix
    assert not again
    assert find_matrix(matrix.folder) == matrix


@pytest.mark.parametrize("gone", ["manifest.json", "matrix"])
def test_build_matrix__that_was_never_finished_or_is_damaged_is_made_again(client, run, gone):
    run = replace(run, params=PARAMS.replace(seed=78))
    matrix = build_matrix(client, run)
    contexts, first = contexts_of(matrix), matrix.folder.read_manifest()["build"]
    (matrix.folder / gone if gone.endswith("json") else matrix.folder / first / gone).remove()
    with pytest.raises(StoreError, match="holds no finished word-context matrix"):
        read_base(matrix.folder)
    again = build_matrix(client, run)
    assert again.folder == matrix.folder
    assert again.folder.read_manifest()["build"] != first
    np.testing.assert_array_equal(contexts_of(again), contexts)


@pytest.mark.parametrize("step", ["sample", "fill"])
def test_build_matrix__deletes_what_an_interrupted_build_left(client, run, step):
    run = replace(run, params=PARAMS.replace(seed=81 + len(step)))

    def interrupt(progress):
        if progress.message.startswith(f"{step}: 1 of"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_matrix(client, run, interrupt)
    (folder,) = [
        folder for folder in Path((run.work / "matrices").url).iterdir() if not (folder / "manifest.json").exists()
    ]
    (left,) = folder.iterdir()
    matrix = build_matrix(client, run)
    assert matrix.folder.children() == sorted([matrix.build, "manifest.json"])
    assert matrix.build != left.name
    assert (matrix.folder / matrix.build).children() == ["matrix"]


@pytest.mark.parametrize("columns", [(0, 1), (5, 7), (4, 9), (6, 12), (3, 17), (18, 20), (0, 20), (7, 7)])
def test_read_contexts__gives_any_rectangle(client, run, monkeypatch, columns):
    cut_finely(monkeypatch, 6000, 400)
    matrix = build_matrix(client, replace(run, params=PARAMS.replace(seed=79)))
    whole = contexts_of(matrix)
    for rows in ((0, 1), (7, 30), (0, matrix.words)):
        actual = read_contexts(matrix.group, rows, columns)
        np.testing.assert_array_equal(actual, whole[slice(*rows), slice(*columns)])
        actual[...] = 0  # nobody else's
        np.testing.assert_array_equal(read_contexts(matrix.group, rows, columns), whole[slice(*rows), slice(*columns)])


def test_read_contexts__notices_rows_that_are_gone(client, run):
    matrix = build_matrix(client, replace(run, params=PARAMS.replace(seed=80)))
    (matrix.folder / matrix.folder.read_manifest()["build"] / "matrix" / "contexts" / "c").remove()
    with pytest.raises(DamageError, match="is missing"):
        read_contexts(matrix.group, (2, 5), (0, 3))
