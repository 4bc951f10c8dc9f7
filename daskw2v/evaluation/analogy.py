"""Analogies: how often a model answers "a is to b as c is to ?" correctly."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from daskw2v.config.registry import find
from daskw2v.errors import ParameterError
from daskw2v.evaluation import lrcos, offsets
from daskw2v.evaluation.relations import KnownRelation, read_relations
from daskw2v.evaluation.solving import Solver, solve
from daskw2v.models.queries.vectors import Vectors
from daskw2v.store.urls import Location

Method = Literal["3cosadd", "3cosmul", "pairdirection", "lrcos"]

_SOLVERS: dict[str, Callable[[Vectors, KnownRelation, int], Solver]] = {**offsets.SOLVERS, "lrcos": lrcos.solver}


@dataclass(frozen=True)
class AnalogyResult:
    """Outcome of one analogy set.

    Parameters
    ----------
    accuracy
        Share of correct answers, 0..1; None without questions.
    questions
        Number of questions asked. All their words are in the vocabulary.
    skipped
        Number of questions skipped because a word is not in the vocabulary.
    categories
        Number of correct answers and of questions, by category.
    groups
        The same by group of categories: semantic and syntactic in Google's set, folders in BATS; empty in other sets.
    """

    accuracy: float | None
    questions: int
    skipped: int
    categories: dict[str, tuple[int, int]]
    groups: dict[str, tuple[int, int]]


def evaluate_analogy(
    vectors: Vectors,
    url: Location,
    method: Method = "3cosadd",
    restrict_vocab: int | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> AnalogyResult:
    """Answer an analogy set. The words of a question are excluded from its answers.

    Parameters
    ----------
    vectors
        What to evaluate.
    url
        File or folder in a layout that `read_relations` reads. Words are looked up as written, then in lower case. If
        a pair has several correct second words, each of them is a correct answer, and the first one that the model
        knows is used in questions.
    method
        Score that the answer x to "a is to b as c is to x" maximizes, all vectors scaled to length 1:

        - `3cosadd`: cos(x, b - a + c), as in `Vectors.analogy`;
        - `3cosmul`: cos(x, b) cos(x, c) / (cos(x, a) + 0.001), each cosine mapped to 0..1;
        - `pairdirection`: cos(x - c, b - a);
        - `lrcos`: P(x) cos(x, c), where P(x) is the probability that x belongs to the class of the category's second
          words. P is fitted on all pairs but the one asked about. There is one question for each pair, not for each
          two pairs. Needs scikit-learn: `pip install 'daskw2v[evaluation]'`.
    restrict_vocab
        Use only this many of the most frequent words, in questions and answers.
    storage_options
        Options for fsspec.

    Raises
    ------
    InputError
        If a file cannot be read, or a line is malformed.
    ParameterError
        If the method is unknown, or `restrict_vocab` is below 1.
    MissingExtraError
        If the method is `lrcos` and scikit-learn is not installed.
    """
    solver = find(_SOLVERS, "method", method)
    if restrict_vocab is not None and restrict_vocab < 1:
        raise ParameterError(
            f"restrict_vocab={restrict_vocab!r} is below 1.", "Give at least 1, or None for all words."
        )
    limit = len(vectors) if restrict_vocab is None else min(restrict_vocab, len(vectors))
    relations = read_relations(url, storage_options)
    solvers = [solver(vectors, KnownRelation.of(relation, vectors.vocabulary, limit), limit) for relation in relations]
    categories = {
        s.known.relation.name: (s.known.count_right(s.asked, answers), len(answers))
        for s, answers in zip(solvers, solve(vectors, solvers, limit), strict=True)
    }
    groups = {
        group: _total([categories[relation.name] for relation in relations if relation.group == group])
        for group in dict.fromkeys(relation.group for relation in relations if relation.group is not None)
    }
    right, asked = _total(categories.values())
    skipped = sum(s.skipped for s in solvers)
    return AnalogyResult(right / asked if asked else None, asked, skipped, categories, groups)


def _total(counts: Iterable[tuple[int, int]]) -> tuple[int, int]:
    """Add up correct answers and questions."""
    pairs = list(counts)
    return sum(right for right, _ in pairs), sum(asked for _, asked in pairs)
