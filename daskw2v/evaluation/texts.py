"""Labelled texts for text classification, their words as rows of a table of vectors."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from daskw2v.errors import InputError
from daskw2v.evaluation.reading import known_id, read_lines
from daskw2v.models.queries.vectors import Vectors
from daskw2v.store.urls import Location
from daskw2v.types import Float32Array, Float64Array, Int64Array


class Split(NamedTuple):
    """Indices of the training, validation and test texts, each of shape (n,) int64."""

    train: Int64Array
    dev: Int64Array
    test: Int64Array


@dataclass(frozen=True, eq=False)
class Texts:
    """Texts and their labels.

    Parameters
    ----------
    labels
        Label of each text, numbered from 0, shape (n,) int64.
    rows
        For each text, the rows of its words in `table`; 0 for unknown words.
    table
        Unit vectors of the known words, shape (1 + words, D) float32; row 0 is zero.
    """

    labels: Int64Array
    rows: list[Int64Array]
    table: Float32Array

    @cached_property
    def means(self) -> Float64Array:
        """Mean unit vector of the known words of each text, shape (n, D); zero without known words."""
        means = np.zeros((len(self.rows), self.table.shape[1]))
        for mean, rows in zip(means, self.rows, strict=True):
            known = rows[rows > 0]
            if len(known):
                mean[:] = self.table[known].mean(axis=0, dtype=np.float64)
        return means

    @property
    def coverage(self) -> float:
        """Share of all words in the texts that the model knows, 0..1."""
        rows = np.concatenate(self.rows)
        return float(np.mean(rows > 0))


def read_texts(url: Location, storage_options: Mapping[str, Any] | None = None) -> list[tuple[str, list[str]]]:
    """Read lines `label<TAB>text`; return the label and the words, separated by spaces, of each.

    Raises
    ------
    InputError
        If the file cannot be read or a line is malformed.
    """
    texts = []
    for number, line in read_lines(url, storage_options):
        label, tab, text = line.partition("\t")
        if not (tab and label.strip() and text.strip()):
            raise InputError(
                f"Line {number} of {url} is not a label and a text: {line[:60]!r}.",
                "Write label<TAB>text in each line; one file has the texts of all labels.",
            )
        texts.append((label.strip(), text.split()))
    return texts


def tabulate(vectors: Vectors, texts: Sequence[tuple[str, list[str]]]) -> Texts:
    """Look up the words of texts, as written, then in lower case, and read the vectors of the known ones.

    Parameters
    ----------
    vectors
        The model.
    texts
        Labels and words, as `read_texts` returns them.
    """
    ids = {word: known_id(vectors.vocabulary, word) for word in {word for _, words in texts for word in words}}
    known = sorted({id_ for id_ in ids.values() if id_ is not None})
    row_of_id = {id_: row for row, id_ in enumerate(known, 1)}
    row_of = {word: 0 if id_ is None else row_of_id[id_] for word, id_ in ids.items()}
    table = np.concatenate([np.zeros((1, vectors.vector_size), np.float32), vectors.units(known)])
    _, labels = np.unique(np.array([label for label, _ in texts], dtype=str), return_inverse=True)
    rows = [np.array([row_of[word] for word in words], np.int64) for _, words in texts]
    return Texts(labels.astype(np.int64), rows, table)
