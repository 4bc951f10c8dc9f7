"""The rows of which fastText composes the vector of a word: its own row and its n-grams' rows, with equal weights."""

from collections.abc import Iterator

import numpy as np

from daskw2v.errors import InputError
from daskw2v.features.keys import FeatureKeys
from daskw2v.features.ngram_kernel import ngrams_in
from daskw2v.features.words import WordFeatures, compose_vectors, own_rows
from daskw2v.models.formats.word2vec import refuse_words
from daskw2v.models.queries.features import FeatureVectors
from daskw2v.models.queries.vectors import Vectors
from daskw2v.models.stored.blocks import cut
from daskw2v.models.stored.tables import StoredRows
from daskw2v.store.limits import free_memory
from daskw2v.types import Float32Array
from daskw2v.vocabulary.vocabulary import Vocabulary

NGRAMS_AT_ONCE = 1 << 22
ROW_BYTES_AT_ONCE = 64 << 20
_SEPARATORS = r"^$|[ \t\n\r\v\f\0]"  # characters that end a word of fastText's text and files


def compose(own: Float32Array, vocabulary: Vocabulary, features: FeatureVectors) -> None:
    """Replace the own rows of words by their vectors, in place."""
    for ids in words_at_once(vocabulary, features.keys.ngrams.maxn, own.shape[1]):
        ngrams = features_of(features.keys, vocabulary, ids)
        with np.errstate(over="ignore", invalid="ignore"):  # `check_rows` finds vectors that are not finite
            own[ids] = compose_vectors(ngrams, own[ids], lambda rows: np.asarray(features.rows[rows]))


def own_rows_of(vectors: Vectors, ngrams: FeatureVectors | None) -> Iterator[Float32Array]:
    """Yield the own rows of words in order of ids: with the rows of their n-grams they make the vectors."""
    if ngrams is None:
        yield from map(vectors.rows, vectors.slices())
        return
    for ids in words_at_once(vectors.vocabulary, ngrams.keys.ngrams.maxn, vectors.vector_size):
        of_words = features_of(ngrams.keys, vectors.vocabulary, ids)
        yield own_rows(of_words, vectors.rows(ids), lambda rows: np.asarray(ngrams.rows[rows]))


def written_ngrams(vectors: Vectors) -> FeatureVectors | None:
    """Return the n-grams of a model for a fastText file, None if it has none; raises as `write_fasttext` does.

    The rows of n-grams are read into memory if they take less than half of the free memory: each word needs several.
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
    for part in slices_of(len(vocabulary), columns):
        start = part.start
        while start < part.stop:
            most = vocabulary.offsets[start] + NGRAMS_AT_ONCE // maxn
            end = int(np.searchsorted(vocabulary.offsets, most, side="right")) - 1
            yield slice(start, start := min(max(start + 1, end), part.stop))


def features_of(keys: FeatureKeys, vocabulary: Vocabulary, ids: slice) -> WordFeatures:
    """Return the n-grams of a range of words, whose own rows weigh as much as one n-gram."""
    starts, buckets = ngrams_in(vocabulary.data, vocabulary.offsets[ids.start : ids.stop + 1], *keys.ngrams)
    return keys.of_ngrams(starts, buckets, np.ones(len(starts) - 1, np.float32))


def slices_of(n: int, columns: int) -> Iterator[slice]:
    """Cut the numbers of n rows into ranges whose rows take some 64 MB."""
    return cut(n, max(1, ROW_BYTES_AT_ONCE // (4 * columns)))
