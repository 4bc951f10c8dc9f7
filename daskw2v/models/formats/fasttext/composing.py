"""The rows of which fastText composes the vector of a word: its own, and those of its n-grams, with equal weights."""

from collections.abc import Iterator

import numpy as np

from daskw2v.errors import InputError
from daskw2v.features.keys import FeatureKeys
from daskw2v.features.ngram_kernel import ngrams_in
from daskw2v.features.words import WordFeatures, compose_vectors, own_rows
from daskw2v.models.formats.word2vec import refuse_words
from daskw2v.models.queries.unseen import FeatureVectors
from daskw2v.models.queries.vectors import Vectors
from daskw2v.models.stored.blocks import cut
from daskw2v.models.stored.tables import StoredRows
from daskw2v.store.memory import free_memory
from daskw2v.types import Float32Array
from daskw2v.vocabulary.vocabulary import Vocabulary

NGRAMS_AT_ONCE = 1 << 22
ROW_BYTES_AT_ONCE = 64 << 20
_SEPARATORS = r"^$|[ \t\n\r\v\f\0]"  # what ends a word of its text, and of its files


def compose(own: Float32Array, vocabulary: Vocabulary, features: FeatureVectors) -> None:
    """Make vectors of the own rows of words, in place."""
    for some in words_at_once(vocabulary, features.keys.ngrams.maxn, own.shape[1]):
        found = features_of(features.keys, vocabulary, some)
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is found at the end
            own[some] = compose_vectors(found, own[some], lambda rows: np.asarray(features.rows[rows]))


def own_rows_of(vectors: Vectors, ngrams: FeatureVectors | None) -> Iterator[Float32Array]:
    """Yield the rows that words have by themselves, in order of ids: with those of their n-grams they make vectors."""
    if ngrams is None:
        yield from map(vectors.rows, vectors.slices())
        return
    for some in words_at_once(vectors.vocabulary, ngrams.keys.ngrams.maxn, vectors.vector_size):
        found = features_of(ngrams.keys, vectors.vocabulary, some)
        yield own_rows(found, vectors.rows(some), lambda rows: np.asarray(ngrams.rows[rows]))


def written_ngrams(vectors: Vectors) -> FeatureVectors | None:
    """Return the n-grams of a model for a fastText file, None if it has none; raises as `write_fasttext` does.

    Their rows are read into memory if they take less than half of what is free, as each word needs some of them.
    """
    refuse_words(vectors, _SEPARATORS, "fastText's format")
    features = vectors.features
    if features is not None and features.keys.columns:
        raise InputError(
            "fastText's format has n-grams, and no place for a table of features.",
            "Export as binary or parquet, which hold the vectors of words alone, or train without features.",
        )
    if features is None or not features.spells:
        return None
    rows = features.rows
    fits = isinstance(rows, StoredRows) and rows.nbytes < free_memory() / 2
    return FeatureVectors(features.keys, rows[:]) if fits else features


def words_at_once(vocabulary: Vocabulary, maxn: int, columns: int) -> Iterator[slice]:
    """Cut a vocabulary into ranges whose rows and n-grams take little memory."""
    for some in slices_of(len(vocabulary), columns):
        start = some.start
        while start < some.stop:
            most = vocabulary.offsets[start] + NGRAMS_AT_ONCE // maxn
            end = int(np.searchsorted(vocabulary.offsets, most, side="right")) - 1
            yield slice(start, start := min(max(start + 1, end), some.stop))


def features_of(keys: FeatureKeys, vocabulary: Vocabulary, some: slice) -> WordFeatures:
    """Return the n-grams of a range of words, whose own rows weigh as much as one of these."""
    starts, buckets = ngrams_in(vocabulary.data, vocabulary.offsets[some.start : some.stop + 1], *keys.ngrams)
    return keys.of_ngrams(starts, buckets, np.ones(len(starts) - 1, np.float32))


def slices_of(n: int, columns: int) -> Iterator[slice]:
    """Cut the numbers of rows into ranges of some 64 MB."""
    return cut(n, max(1, ROW_BYTES_AT_ONCE // (4 * columns)))
