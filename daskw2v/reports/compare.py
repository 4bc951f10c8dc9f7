"""Comparison of two models: Params, sizes, scores and nearest neighbours."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np

from daskw2v.errors import ParameterError
from daskw2v.evaluation import Evaluation
from daskw2v.evaluation.stability import StabilityResult, neighbour_stability
from daskw2v.models.queries.vectors import Vectors
from daskw2v.reports.text import percent, plain, shown, signed

Neighbours = tuple[tuple[str, float], ...]  # words and their cosines, best first

_EXAMPLES = 10  # words whose neighbours are shown
_CANDIDATES = 2000  # most frequent words, from which examples are chosen


@dataclass(frozen=True)
class ComparedValue:
    """A value of two models by its name; None for a model that does not have it."""

    name: str
    first: Any
    second: Any

    @property
    def change(self) -> float | None:
        """The second value minus the first; None if they are not both numbers."""
        values = self.first, self.second
        are_numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
        return self.second - self.first if are_numbers else None


@dataclass(frozen=True)
class SideBySide:
    """The nearest words of a word in two models."""

    word: str
    first: Neighbours
    second: Neighbours

    @property
    def shared(self) -> frozenset[str]:
        """Words that are among the nearest words in both models."""
        return frozenset(word for word, _ in self.first) & frozenset(word for word, _ in self.second)


@dataclass(frozen=True)
class Comparison:
    """Result of `compare`.

    Parameters
    ----------
    urls
        URLs of the two models; None for a model without a URL.
    sizes
        Sizes, speed and loss, as far as either model has them.
    params
        The Params that differ between the models.
    scores
        Scores of each set and method that either model was evaluated on; their names are "set, method".
    neighbours
        Nearest words of the example words.
    stability
        Agreement of the models on the neighbours of the most frequent words, not of the examples.
    """

    columns: ClassVar[tuple[str, ...]] = ("", "first", "second", "second - first")  # of `rows`

    urls: tuple[str | None, str | None]
    sizes: tuple[ComparedValue, ...]
    params: tuple[ComparedValue, ...]
    scores: tuple[ComparedValue, ...]
    neighbours: tuple[SideBySide, ...]
    stability: StabilityResult

    def as_dict(self) -> dict[str, Any]:
        """Return the comparison as JSON types; "change" is the second value minus the first, if both are numbers."""
        values = {
            name: [{**asdict(value), "change": value.change} for value in getattr(self, name)]
            for name in ("sizes", "params", "scores")
        }
        neighbours = [
            {
                "word": pair.word,
                "first": [list(near) for near in pair.first],
                "second": [list(near) for near in pair.second],
                "shared": sorted(pair.shared),
            }
            for pair in self.neighbours
        ]
        return {"urls": list(self.urls), **values, "neighbours": neighbours, "stability": asdict(self.stability)}

    def rows(self) -> Iterator[tuple[str, ...]]:
        """Yield the rows of a table of the comparison, as texts for `columns`: a name, two values, their change."""
        yield "model", *(plain(url) for url in self.urls), ""
        for value in (*self.sizes, *self.params, *self.scores):
            yield shown(value.name), plain(value.first), plain(value.second), signed(value.change)
        if self.stability.overlap is not None:
            yield f"nearest {self.stability.topn} that both share", "", "", percent(self.stability.overlap, 1)
        for pair in self.neighbours:
            first, second = (", ".join(shown(word) for word, _ in near) for near in (pair.first, pair.second))
            yield f"near {shown(pair.word)}", first, second, f"{len(pair.shared)} shared"

    def as_text(self) -> str:
        """Return the table of `columns` and `rows` as plain text, a line for each row, with tabs between columns."""
        return "\n".join("\t".join(row) for row in (self.columns, *self.rows()))


def compare(
    first: Vectors,
    second: Vectors,
    words: Sequence[str] | None = None,
    topn: int = 10,
    evaluations: tuple[Evaluation | None, Evaluation | None] = (None, None),
) -> Comparison:
    """Compare two models. A model in a store is read block by block, not loaded into memory.

    Parameters
    ----------
    first, second
        The two models; differences are second minus first.
    words
        Words whose neighbours are shown. The default is up to ten words of the first model that both know, as
        `choose_words` chooses them.
    topn
        Number of neighbours of each word.
    evaluations
        Results of `evaluate` for the first and the second model; None for a model that was not evaluated.

    Returns
    -------
    comparison
        The differences; `as_dict` and `as_text` return all of them.

    Raises
    ------
    UnknownWordError
        If a model does not know one of `words`.
    ParameterError
        If `topn` is below 1.

    Examples
    --------
    >>> earlier, later = daskw2v.Vectors.open("last-week"), daskw2v.Vectors.open("work")
    >>> comparison = daskw2v.compare(earlier, later, words=["king"], topn=2)
    >>> [(value.name, value.first, value.second) for value in comparison.params]
    [('window', 5, 2)]
    """
    if topn < 1:
        raise ParameterError(f"topn={topn!r} is below 1.", "Give the number of neighbours of each word, such as 10.")
    if words is None:
        words = choose_words(first, _EXAMPLES, lambda word: word.isalpha() and word in second)
    near = zip(words, find_nearest(first, words, topn), find_nearest(second, words, topn), strict=True)
    params = _compare_values(*(model.metadata.get("params", {}) for model in (first, second)))
    return Comparison(
        (first.url, second.url),
        _compare_values(_collect_sizes(first), _collect_sizes(second)),
        tuple(value for value in params if value.first != value.second),
        _compare_values(*map(_collect_scores, evaluations)),
        tuple(SideBySide(*each) for each in near),
        neighbour_stability(first, second, topn=topn),
    )


def _collect_sizes(vectors: Vectors) -> dict[str, Any]:
    """Return sizes, speed and loss of a model by their names in a comparison; None for values that it does not have."""
    corpus, metrics, vocabulary = (vectors.metadata.get(part, {}) for part in ("corpus", "metrics", "vocabulary"))
    return {
        "words": len(vectors),
        "dimensions": vectors.vector_size,
        "tokens of text": corpus.get("tokens"),
        "types of text": vocabulary.get("raw_types"),
        "words trained": metrics.get("words"),
        "seconds of training": metrics.get("seconds"),
        "words/s": metrics.get("words_per_second"),
        "loss": metrics.get("loss"),
    }


def _collect_scores(evaluation: Evaluation | None) -> dict[str, float | None]:
    """Return the scores of an evaluation by "set, method"; an empty dict for None."""
    return {} if evaluation is None else {f"{s.name}, {s.measure}": s.value for s in evaluation.rows()}


def _compare_values(first: Mapping[str, Any], second: Mapping[str, Any]) -> tuple[ComparedValue, ...]:
    """Return the values, equal or not, that at least one of two models has, from the models' values by name."""
    values = (ComparedValue(name, first.get(name), second.get(name)) for name in {**first, **second})
    return tuple(value for value in values if (value.first, value.second) != (None, None))


def choose_words(vectors: Vectors, n: int, usable: Callable[[str], bool] = str.isalpha) -> list[str]:
    """Choose example words of a model: frequent words with a specific meaning, in any language.

    The usable words among the 2,000 most frequent words are divided into n parts by frequency. Of each part, the word
    with the longest vector is chosen: among words of similar frequency, long vectors belong to words that occur in few
    contexts (Schakel and Wilson, 2015, "Measuring word significance using distributed representations of words").

    Parameters
    ----------
    vectors
        The model.
    n
        Number of words to choose; fewer words are returned if fewer are usable.
    usable
        Function of a word that returns whether the word may be chosen; by default, if it consists of letters.

    Returns
    -------
    list of str
        The words, most frequent first.
    """
    frequent = vectors.vocabulary.between(0, min(len(vectors), _CANDIDATES))
    lengths = np.linalg.norm(vectors.rows(slice(len(frequent))), axis=1)
    ids = np.array([i for i, word in enumerate(frequent) if usable(word)], np.int64)
    parts = [part for part in np.array_split(ids, n) if len(part)]
    return [frequent[part[np.argmax(lengths[part])]] for part in parts]


def find_nearest(vectors: Vectors, words: Sequence[str], topn: int) -> list[Neighbours]:
    """Return the `topn` nearest words of each word with their cosines, best first, in one pass over the model.

    Raises
    ------
    UnknownWordError
        If a word is not known.
    """
    ids, cosines = vectors.nearest(list(words), topn)
    return [
        tuple((vectors.vocabulary.word(i), cosine) for i, cosine in zip(row, scores, strict=True))
        for row, scores in zip(ids.tolist(), cosines.tolist(), strict=True)
    ]
