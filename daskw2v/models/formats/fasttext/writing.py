"""Writes models as fastText's files."""

from dataclasses import replace
from typing import BinaryIO

import numpy as np

from daskw2v.errors import InputError
from daskw2v.features.keys import NGrams
from daskw2v.models.formats.fasttext.composing import own_rows_of, slices_of
from daskw2v.models.formats.fasttext.layout import KIND, SHAPE, write_header, write_words
from daskw2v.models.formats.safetensors import write_numbers
from daskw2v.models.formats.word2vec import refuse_words
from daskw2v.models.queries.composed import FeatureVectors
from daskw2v.models.queries.vectors import Vectors
from daskw2v.models.stored.rows import StoredRows
from daskw2v.store.limits import free_memory

_SEPARATORS = r"^$|[ \t\n\r\v\f\0]"  # what ends a word of its text, and of its files


def write_fasttext(vectors: Vectors, f: BinaryIO) -> None:
    """Write a model that fastText and gensim load, block by block.

    A word's own row is computed such that its mean with the rows of the word's n-grams is the word's vector. Rows of
    buckets without an n-gram of the text are zeros. The output table is written if the model has a row of it for each
    word. It is zeros otherwise: the inner nodes of a tree are not fastText's, whose tree breaks ties differently. A
    count of 0, as in models from files without counts, becomes 1, because gensim would leave the word out. The n-grams
    that a pruned model has left out are zeros too: fastText's vectors of unseen words are then shorter than ours, with
    the same cosines.

    Raises
    ------
    InputError
        If a word is empty or holds whitespace or NUL; or if the model has a table of features.
    """
    ngrams, columns = written_ngrams(vectors), vectors.vector_size
    if ngrams is not None:
        ngrams = FeatureVectors(replace(ngrams.keys, pruned=False), ngrams.rows)
    write_header(vectors, NGrams(bucket=0) if ngrams is None else ngrams.keys.ngrams, f)
    write_words(vectors.vocabulary, f)
    f.write(KIND.pack(False) + SHAPE.pack(len(vectors) + (0 if ngrams is None else ngrams.keys.ngrams.bucket), columns))
    for rows in own_rows_of(vectors, ngrams):
        write_numbers(f, rows)
    if ngrams is not None:
        _write_buckets(ngrams, f)
    output = vectors.output_rows()
    f.write(KIND.pack(False) + SHAPE.pack(len(vectors), columns))
    for some in vectors.slices():
        shape = (some.stop - some.start, columns)
        write_numbers(f, np.zeros(shape, np.float32) if output is None else output[some])


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


def _write_buckets(ngrams: FeatureVectors, f: BinaryIO) -> None:
    """Write the rows of all buckets."""
    keys = ngrams.keys
    for some in slices_of(keys.ngrams.bucket, ngrams.vector_size):
        rows = keys.rows_of(np.arange(some.start, some.stop, dtype=np.int32))
        written = np.zeros((len(rows), ngrams.vector_size), np.float32)
        written[rows >= 0] = ngrams.rows[rows[rows >= 0]]
        write_numbers(f, written)
