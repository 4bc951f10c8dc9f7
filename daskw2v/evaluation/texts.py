"""Labelled texts as rows of a table of word vectors: what text classification reads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from daskw2v.errors import InputError
from daskw2v.evaluation.questions import known_id, read_lines
from daskw2v.locations import Location
from daskw2v.models.rows import Floats
from daskw2v.models.vectors import Vectors

Ints = npt.NDArray[np.int64]


class Split(NamedTuple):
    """Numbers of the texts to train on, to choose settings by, and to test on, each of shape (n,) int64."""

    train: Ints
    dev: Ints
    test: Ints


@dataclass(frozen=True, eq=False)
class Texts:
    """Texts and their labels.

    Parameters
    ----------
    labels
        A number from 0 on for each text, shape (n,) int64.
    rows
        For each text, the row of `table` of each of its words: 0 for a word the model does not know.
    table
        Unit vectors of the words, shape (1 + words, D) float32; row 0 is zero.
    """

    labels: Ints
    rows: list[Ints]
    table: Floats

    @cached_property
    def means(self) -> npt.NDArray[np.float64]:
        """Mean of each text's known words' unit vectors, shape (n, D); zero for a text without known words."""
        means = np.zeros((len(self.rows), self.table.shape[1]))
        for mean, rows in zip(means, self.rows, strict=True):
            known = rows[rows > 0]
            if len(known):
                mean[:] = self.table[known].mean(axis=0, dtype=np.float64)
        return means

    @property
    def coverage(self) -> float:
        """Share of the texts' words that the model knows, 0..1."""
        rows = np.concatenate(self.rows)
        return float(np.mean(rows > 0))


def read_texts(url: Location, storage_options: Mapping[str, Any] | None = None) -> list[tuple[str, list[str]]]:
    """Read lines `label<TAB>text`: each one's label and words, which spaces part.

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
                "Write label<TAB>text in each line; one file holds the texts of all labels.",
            )
        texts.append((label.strip(), text.split()))
    return texts


def tabulate(vectors: Vectors, texts: Sequence[tuple[str, list[str]]]) -> Texts:
    """Look up the words of texts: as written, then lower-cased. Only their vectors are read.

    Parameters
    ----------
    vectors
        Where to look.
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
