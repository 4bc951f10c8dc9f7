"""`Params.features`: the features of words, which the workers of a run find once.

Tasks find the buckets of the n-grams of ranges of words and count them; one task reads the table, and assigns rows to
all features that words have, the most frequent first. Features that no word has get no row: it would stay as it was
drawn, and be noise in the vectors of new words. The model then has one more table, `features`, and its input rows are
words' own rows. Measurements during training, and the version, have composed rows.
"""

import uuid
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from distributed import Client

from daskw2v.cluster.shared_memory import share
from daskw2v.cluster.tasks import run_tasks
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.config.settings import split_content
from daskw2v.errors import ParameterError
from daskw2v.features.keys import FeatureColumn, FeatureKeys, HashedNGrams
from daskw2v.features.ngram_kernel import hash_stored_words
from daskw2v.features.settings import FEATURES, ComposedWords, FeatureTable, NGrams
from daskw2v.features.table import TableFeatures, check_table, read_table, summarize_table
from daskw2v.features.words import (
    WordFeatures,
    compose_vectors,
    join_features,
    solve_own_rows,
    sum_features,
    total_weights,
    weigh_own_rows,
)
from daskw2v.kernels.rng import Purpose
from daskw2v.models.stored.store import read_attempt, read_features
from daskw2v.models.stored.tables import open_table as open_rows
from daskw2v.objectives.base import draw_rows
from daskw2v.objectives.registry import find_objective
from daskw2v.progress import Listener, message_sender
from daskw2v.sampling.run import Run, RunFeatures
from daskw2v.sampling.segments import cut_range
from daskw2v.store.arrays import read_array, write_array
from daskw2v.store.storage import Store
from daskw2v.training.loop.strategy import ModelRows, TableParts
from daskw2v.training.start.named_tables import find_table, is_settled, open_table
from daskw2v.types import Float32Array, Int32Array, Int64Array, RowIds

_RANGE = 1 << 20  # words of a task
_KEYS, _TABLE = "keys", "table"
_ARRAYS = ("offsets", "rows", "weights")


def with_feature_table(params: Params, resources: Resources) -> Params:
    """Return Params that name the table of features by its absolute URL and a digest of its content.

    The digest is of the files' names, sizes and versions. Params without a table are returned unchanged.

    Raises
    ------
    InputError, StoreError
        If the table cannot be read, or `check_table` refuses it.
    """
    features = FeatureTable.find(params)
    if features is None or is_settled(str(features.table)):
        return params
    name, sources = find_table(str(features.table), resources)
    options, timeout = resources.storage_options, resources.store_timeout
    check_table(split_content(name)[0], sources, options, timeout, dict(features.weights))
    return params.replace(features=name)


def count_table_rows(run: Run) -> dict[str, int]:
    """Return the number of rows of each table that strategies train for a run, with the table of features."""
    tables = find_objective(run.params.objective.name).tables(run.params, run.vocabulary.size)
    return tables if run.features is None else {**tables, FEATURES: run.features.rows}


def find_features(client: Client, folder: Store, run: Run, resources: Resources, listener: Listener) -> RunFeatures:
    """Find the features of a run's words, on the workers, and write them to a folder; return folder and number of rows.

    The listener is called with a summary of the words that a table of features has.

    Raises
    ------
    ParameterError
        If no word has an n-gram of at least `minn` characters.
    InputError
        If the table of features cannot be read, has changed since the Params were settled, or has none of the words.
    """
    folder.create_group()
    ngrams = NGrams.find(run.params)
    ranges = [] if ngrams is None else cut_range(0, run.vocabulary.size, _RANGE)
    jobs = {number: (folder, run, number, start, stop) for number, (start, stop) in enumerate(ranges)}
    buckets, counts = np.empty(0, np.int32), np.empty(0, np.int64)
    for _, (new_buckets, new_counts) in run_tasks(client, "ngrams", _count_ngrams, jobs):
        buckets, counts = _sum_counts(np.concatenate([buckets, new_buckets]), np.concatenate([counts, new_counts]))
    if ngrams is not None and not len(buckets):
        raise ParameterError(
            f"No word of the text has an n-gram of minn={ngrams.minn} characters, marks of begin and end included.",
            "Give a smaller minn, or leave maxn out.",
        )
    job = {f"features-{uuid.uuid4().hex}": (folder, run, resources, buckets[np.argsort(-counts, kind="stable")])}
    ((_, (rows, summary)),) = run_tasks(client, "features", _write_keys, job)
    if summary:
        message_sender(listener, "features", "words")(summary)
    return RunFeatures(folder, rows)


def _sum_counts(buckets: Int32Array, counts: Int64Array) -> tuple[Int32Array, Int64Array]:
    """Return the distinct buckets, ascending, and the sum of the counts of each."""
    distinct, indices = np.unique(buckets, return_inverse=True)
    totals = np.zeros(len(distinct), np.int64)
    np.add.at(totals, indices, counts)
    return distinct, totals


def _count_ngrams(folder: Store, run: Run, number: int, start: int, stop: int) -> tuple[Int32Array, Int64Array]:
    """Task: write the n-grams' buckets of the words start..stop-1; return the distinct buckets and their counts.

    A bucket's count is the number of times that its n-grams occur in the text.
    """
    ngrams = NGrams.of(run.params)
    starts, buckets = hash_stored_words(*run.vocabulary.between(start, stop), ngrams.minn, ngrams.maxn, ngrams.bucket)
    group = (folder / f"ngrams-{number}").create_group()
    write_array(group, "offsets", starts)
    write_array(group, "buckets", buckets)
    counts = np.repeat(run.vocabulary.read_counts(start, stop), np.diff(starts))
    return _sum_counts(buckets, counts)


def _write_keys(folder: Store, run: Run, resources: Resources, buckets: Int32Array) -> tuple[int, str]:
    """Task: write the key of each row of features, and the features of words in the user's table, if there is one.

    Parameters
    ----------
    folder, run, resources
        The folder to write to, the run, and the Resources with the store's options.
    buckets
        Buckets of n-grams that get a row, the most frequent first.

    Returns
    -------
    n_rows, summary
        The number of rows, and what the user's table has of the words, as text; "" without such a table.
    """
    columns, summary = tuple[FeatureColumn, ...](), ""
    if (features := FeatureTable.find(run.params)) is not None:
        table = TableFeatures(run.vocabulary.load(), dict(features.weights))
        for source in open_table(str(features.table), resources, "features"):
            for words, values in read_table(source, resources.storage_options, resources.store_timeout):
                table.add(words, values, source.url)
        columns, word_features = table.finish()
        group = (folder / _TABLE).create_group()
        for name in _ARRAYS:
            write_array(group, name, getattr(word_features, name))
        base = None if run.base is None else read_features(run.base.model)
        summary = summarize_table(word_features, columns, () if base is None else base.columns)
    settings = NGrams.find(run.params)
    ngrams = HashedNGrams() if settings is None else HashedNGrams(settings.minn, settings.maxn, settings.bucket)
    keys = FeatureKeys(columns, ngrams, buckets)
    keys.save((folder / _KEYS).create_group())
    return len(keys), summary


def load_feature_keys(run: Run) -> FeatureKeys:
    """Return the keys of the rows of a run's table of features, in order: the feature that each belongs to."""
    assert run.features is not None
    return FeatureKeys.load((run.features.folder / _KEYS).open_group())


@lru_cache(maxsize=2)
def load_features(run: Run) -> WordFeatures | None:
    """Return the features of a run's words; None where words have none. Cached in a process, for the last two runs."""
    if run.features is None:
        return None
    counts, parts = run.vocabulary.read_counts(), list[WordFeatures]()
    if FeatureTable.find(run.params) is not None:
        group = (run.features.folder / _TABLE).open_group()
        offsets, rows, weights = (read_array(group, name) for name in _ARRAYS)
        parts.append(WordFeatures(offsets, rows, weights, np.ones(len(counts), np.float32)))
    if NGrams.find(run.params) is not None:
        parts.append(_load_ngrams(run, run.features.folder))
    joined = parts[0] if len(parts) == 1 else join_features(*parts)
    return weigh_own_rows(joined, counts, ComposedWords.of(run.params).prior_count)


def _load_ngrams(run: Run, folder: Store) -> WordFeatures:
    """Return the n-grams of all words as features, from the files that `_count_ngrams` wrote to the folder."""
    keys, n_words = load_feature_keys(run), run.vocabulary.size
    rows, offsets = list[Any](), [np.zeros(1, np.int64)]
    for number, _ in enumerate(cut_range(0, n_words, _RANGE)):
        group = (folder / f"ngrams-{number}").open_group()
        rows.append(keys.find_rows(read_array(group, "buckets")))
        offsets.append(read_array(group, "offsets")[1:] + offsets[-1][-1])
    ones = np.ones(n_words, np.float32)
    return WordFeatures(np.concatenate(offsets), np.concatenate(rows), np.zeros(0, np.float32), ones)


def make_initial_feature_rows(run: Run, ids: RowIds) -> Float32Array:
    """Return rows of features before training, shape (n, D): each the mean of the base's matching rows, or drawn."""
    rows = draw_rows(run.params, Purpose.FEATURE, ids)
    base = None if run.base is None else _match_base_features(run)
    if run.base is not None and base is not None and len(ids):
        known, model = base.select(np.asarray(ids, np.int64)), run.base.model
        table, totals = _all_features(model, read_attempt(model)), total_weights(known)[:, None]
        sums = sum_features(known, lambda ids_of_table: table[ids_of_table], rows.shape[1])
        rows = np.where(totals > 0, sums / np.maximum(totals, 1e-30), rows)
    return rows


@lru_cache(maxsize=1)
def _match_base_features(run: Run) -> WordFeatures | None:
    """Return the base's features that each row of features begins with; None where the base has no features."""
    assert run.base is not None
    base_features = read_features(run.base.model)
    return None if base_features is None else base_features.match_keys(load_feature_keys(run))


def make_initial_own_rows(run: Run, ids: RowIds, vectors: Float32Array) -> Float32Array:
    """Return the own rows of words before training, shape (n, D), with which composed vectors are `vectors`, (n, D)."""
    features = load_features(run)
    if features is None:
        return vectors
    word_features = features.select(np.asarray(ids, np.int64))
    return solve_own_rows(word_features, vectors, lambda rows: make_initial_feature_rows(run, rows.astype(np.int64)))


def composed_rows(run: Run, trained: Store, table: str, ids: RowIds, rows: Float32Array) -> Float32Array:
    """Return rows of a trained model's table for its version, shape (n, D): input rows are composed.

    Parameters
    ----------
    run
        The run.
    trained
        The folder of the trained tables.
    table, ids, rows
        The table, the ids of its rows, and these rows, shape (n, D).
    """
    return rows if table != "input" else _compose(run, rows, ids, _all_features(trained, read_attempt(trained)))


@lru_cache(maxsize=1)
def _all_features(trained: Store, attempt: str) -> Float32Array:
    """Return the table of features in a folder, shape (rows, D); cached by its attempt, for tasks on other words."""
    return open_rows(trained, FEATURES)[:]


def _compose(run: Run, word_rows: Float32Array, ids: RowIds, features: Float32Array) -> Float32Array:
    """Return the composed vectors of words, shape (n, D), from their own rows, ids, and the table of all features."""
    word_features = load_features(run)
    assert word_features is not None
    return compose_vectors(word_features.select(np.asarray(ids, np.int64)), word_rows, lambda rows: features[rows])


def compose_model_rows(client: Client, run: Run, rows: ModelRows) -> ModelRows:
    """Return the tables of words, input rows composed as one part; all tables unchanged if words have no features."""
    if run.features is None:
        return rows
    word_rows, features = rows["input"], rows[FEATURES]
    assert word_rows.join is not None
    assert features.join is not None
    parts = (word_rows.join, features.join, list(word_rows.parts), list(features.parts))
    composed = client.submit(_compose_table, run, *parts, key=f"compose-{uuid.uuid4().hex}", retries=1)
    words = {name: table for name, table in rows.items() if name != FEATURES}
    return {**words, "input": TableParts([composed], _pick_rows, _return_table)}


def _compose_table(
    run: Run, join: Callable[..., Any], join_features: Callable[..., Any], word_rows: list[Any], features: list[Any]
) -> Float32Array:
    """Task: return the composed vectors of all words, shape (V, D), from the parts of own rows and of features."""
    return share(_compose(run, join(*word_rows), np.arange(run.vocabulary.size), join_features(*features)))


def _pick_rows(rows: Float32Array, _: int, wanted: Int64Array) -> tuple[Int64Array, Float32Array]:
    """Return all wanted rows from the table, which is a single part: `TableParts.pick`."""
    return np.arange(len(wanted)), np.asarray(rows)[wanted]


def _return_table(rows: Float32Array) -> Float32Array:
    """Return the table, which is a single part: `TableParts.join`."""
    return rows
