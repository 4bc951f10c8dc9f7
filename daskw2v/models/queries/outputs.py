"""The model as a folder or file, the view in a notebook, and the output table of a version (word2vec's syn1neg)."""

import logging
from collections.abc import Collection, Mapping, Sequence
from html import escape
from importlib import import_module
from typing import Any

import numpy as np

from daskw2v.corpus.stored_tokenizers import is_settled_file
from daskw2v.errors import ParameterError, StoreError
from daskw2v.features.settings import FEATURES
from daskw2v.models.queries.rows import WordRows
from daskw2v.models.stored.arguments import as_nonempty_word_list, as_positive_int
from daskw2v.models.stored.blocks import cut
from daskw2v.models.stored.files import create_folder
from daskw2v.models.stored.store import (
    finish,
    read_tokenizer,
    write_features,
    write_subwords,
    write_tokenizer_json,
    write_vocabulary,
)
from daskw2v.models.stored.tables import StoredRows, create_model, open_table, table_names, write_table_rows
from daskw2v.safe_text import escaped
from daskw2v.store.storage import Store
from daskw2v.store.urls import Location, as_url
from daskw2v.vocabulary.vocabulary import Word

_SHOWN = 10  # words in a notebook
_OUTPUT = "output"
NGRAMS = "n-grams (vectors of unseen words)"

_log = logging.getLogger(__name__)


class Outputs(WordRows):
    """The model as a folder, file or page, and its output table."""

    def _repr_html_(self) -> str:
        """Return the HTML table that a notebook shows: size, source, and the most frequent words."""
        words = self.vocabulary.between(0, min(_SHOWN, len(self.vocabulary)))
        more = ", ..." if len(self.vocabulary) > _SHOWN else ""
        shown = {
            "words": f"{len(self.vocabulary):,}",
            "dimensions": f"{self.vector_size:,}",
            "from": self.url or "memory",
            "first words": f"{', '.join(words)}{more}",
        }
        rows = (f"<tr><th>{name}</th><td>{escape(escaped(text))}</td></tr>" for name, text in shown.items())
        return f"<table>{''.join(rows)}</table>"

    def save(
        self, url: Location, format: str | None = None, storage_options: Mapping[str, Any] | None = None, **options: Any
    ) -> None:
        """Write the model into a folder, which `daskw2v.open` opens, or into a file of another tool.

        The folder holds all that queries and a static export need. Stable ids and phrases stay with the versions of
        their work directory.

        Parameters
        ----------
        url
            Any fsspec URL or local path: a file, which is replaced; or a folder that does not exist or is empty.
        format
            A format of `daskw2v.export`. By default the suffix of the name decides; a name without such a suffix is a
            folder.
        storage_options
            Options for fsspec.
        **options
            `sif` and `part_size` of `daskw2v.export`.

        Raises
        ------
        ParameterError
            If the format is unknown, or an option is for another one.
        StoreError
            If there is something in the folder, a vector is not finite, or writing fails. Formats of other tools
            raise the errors of `daskw2v.export`.

        Examples
        --------
        >>> import daskw2v
        >>> vectors = daskw2v.Vectors(["king", "queen"], [[3, 1], [2, 2]])
        >>> vectors.save("memory://model")
        >>> vectors.save("memory://vectors.txt")
        >>> daskw2v.open("memory://model"), daskw2v.open("memory://vectors.txt")
        (Vectors(2 words x 2, url='memory://model'), Vectors(2 words x 2, url='memory://vectors.txt'))
        """
        exporting = import_module("daskw2v.models.formats.export")  # imports this module
        if format is not None or options or exporting.format_by_name(as_url(url, "model")) is not None:
            exporting.export(self, url, format, storage_options, **options)
            return
        with create_folder(as_url(url, "model"), storage_options) as store:
            self.write_to(store)

    def write_to(self, store: Store) -> None:
        """Delete everything in a folder, and write the model into it, as `save` does."""
        slices = list(self.slices())
        tables = {"input": (len(self.vocabulary), self.vector_size)}
        if self.features is not None:
            tables[FEATURES] = (len(self.features.keys), self.vector_size)
        step = slices[0].stop if slices else 1
        create_model(store, tables, step, subwords=self.subwords is not None)
        for ids in slices:
            write_table_rows(store, "input", ids.start, self.rows(ids))
        write_vocabulary(store, self.vocabulary)
        if self.subwords is not None:
            write_subwords(store, self.subwords)
        if self.features is not None:
            for part in cut(tables[FEATURES][0], step):
                write_table_rows(store, FEATURES, part.start, np.asarray(self.features.rows[part]))
            write_features(store, self.features.keys)
        if (tokenizer := self.tokenizer_json()) is not None:
            write_tokenizer_json(store, tokenizer)
        finish(store, self.metadata)

    def tokenizer_json(self) -> bytes | None:
        """Return the tokenizer of Hugging Face that the text was split by, as the JSON of its file.

        The result is None for another kind of tokenizer, and for vectors that are not of a version that was opened.

        Raises
        ------
        DamageError
            If the version holds another tokenizer than its parameters name.

        Examples
        --------
        >>> from daskw2v import Vectors
        >>> Vectors(["king", "queen"], [[3, 1], [2, 2]]).tokenizer_json() is None
        True
        """
        name = self.metadata.get("params", {}).get("tokenizer")
        return read_tokenizer(self._version, name) if self._version is not None and is_settled_file(name) else None

    def output_rows(self) -> StoredRows | None:
        """Return the output table (word2vec's syn1neg), shape (V, D) float32, of a version that was opened.

        Rows are read when the result is indexed. The result is None if the version's table does not have a row for each
        word, as with hierarchical softmax, and for vectors that are only in memory or that `align` has rotated.

        Examples
        --------
        >>> from daskw2v import Vectors
        >>> Vectors(["king", "queen"], [[3, 1], [2, 2]]).output_rows() is None
        True
        """
        if self._outputs is None or _OUTPUT not in table_names(self._outputs):
            return None
        rows = open_table(self._outputs, _OUTPUT)
        return rows if rows.shape == (len(self.vocabulary), self.vector_size) else None  # not of a prefix

    def predict_output_word(self, context_words_list: Sequence[Word], topn: int = 10) -> list[tuple[str, float]]:
        """Return the most probable words between context words, by the output table, as gensim does.

        The mean of the words' vectors, or their sum if the model has `cbow_mean=False`, times each output vector:
        softmax of these numbers.

        Parameters
        ----------
        context_words_list
            The context words.
        topn
            Number of words to return.

        Returns
        -------
        words
            Words and their probabilities, the most probable first.

        Raises
        ------
        UnknownWordError
            If a word is not known; gensim passes over it.
        ParameterError
            If the model has no output table with a row for each word (`output_rows`), there are no words, or `topn` is
            below 1.
        StoreError
            If the output table is not finite.

        Examples
        --------
        >>> import daskw2v
        >>> text, work = ["king and queen"] * 50, "memory://predicting"
        >>> model = daskw2v.train(text, work=work, vector_size=4, min_count=1, sample=0)  # doctest: +SKIP
        >>> model.predict_output_word(["king", "queen"], topn=1)[0][0]  # doctest: +SKIP
        'and'
        """
        topn = as_positive_int("topn", topn)
        context = self._look_up(as_nonempty_word_list(context_words_list))[1].sum(axis=0, dtype=np.float64)
        output = self.output_rows()
        if output is None:
            problem = f"{self!r} has no output table with a row for each word."
            raise ParameterError(problem, "Open a version that was trained by negative sampling.")
        if self.metadata.get("params", {}).get("cbow_mean", True):
            context /= len(context_words_list)
        scores = np.concatenate([output[ids] @ context for ids in self.slices()])
        if not np.isfinite(scores).all():
            raise StoreError(f"The output table of {self!r} is not finite.", "Take it from a copy, or train again.")
        probabilities = np.exp(scores - scores.max())
        probabilities /= probabilities.sum()
        best = np.argsort(-probabilities, kind="stable")[:topn].tolist()
        return [(self.vocabulary.word(id_), float(probabilities[id_])) for id_ in best]


def warn_of_omitted_parts(vectors: WordRows, target: str, holds: Collection[str] = ()) -> None:
    """Log a warning that names the parts of a model that `target`, a file or object, lacks.

    `holds` are names of parts that it has.
    """
    features = vectors.features
    parts = {
        NGRAMS: features is not None and features.has_ngrams,
        "features (vectors of new items)": features is not None and features.keys.columns,
        "subword network (vectors of unseen words)": vectors.subwords is not None,
        "phrases (how words of new text are joined)": vectors.metadata.get("phrases"),
    }
    if missing := [part for part, exists in parts.items() if exists and part not in holds]:
        _log.warning("%s lacks parts of the model: %s.", target, ", ".join(missing))
