"""Analogies: how often "a is to b as c is to ?" is answered with an expected word."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from daskw2v.errors import ParameterError
from daskw2v.evaluation import lrcos, offsets
from daskw2v.evaluation.relations import KnownRelation, read_relations
from daskw2v.evaluation.solving import Solver, solve
from daskw2v.locations import Location
from daskw2v.models.vectors import Vectors
from daskw2v.registry import find

Method = Literal["3cosadd", "3cosmul", "pairdirection", "lrcos"]

_SOLVERS: dict[str, Callable[[Vectors, KnownRelation, int], Solver]] = {**offsets.SOLVERS, "lrcos": lrcos.solver}


@dataclass(frozen=True)
class AnalogyResult:
    """Outcome of one analogy set.

    Parameters
    ----------
    accuracy
        Share of questions answered rightly, 0..1; None without questions.
    questions
        Questions asked: all their words known.
    skipped
        Questions left out.
    categories
        Right answers and questions asked, for each category.
    groups
        The same for each group of categories: Google's semantic and syntactic ones, BATS's folders; empty for others.
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
    """Answer analogies; the given words are no answers.

    Parameters
    ----------
    vectors
        What to evaluate.
    url
        File or folder in any of the layouts that `read_relations` knows. Words are looked up as written, then
        lower-cased. Where several words are right, each of those counts, and the first that is known stands in
        questions.
    method
        How x is found in "a is to b as c is to x", all vectors scaled to length 1:

        - `3cosadd`: of the largest cos(x, b - a + c), as in `Vectors.analogy`;
        - `3cosmul`: of the largest cos(x, b) cos(x, c) / (cos(x, a) + 0.001), each cosine mapped to 0..1;
        - `pairdirection`: of the largest cos(x - c, b - a);
        - `lrcos`: of the largest P(x) cos(x, c), where P is the chance that x is of the kind that all other pairs of
          the category have as second word. It asks once about each pair rather than for each two. Needs
          scikit-learn: `pip install 'daskw2v[evaluation]'`.
    restrict_vocab
        Know only the first (most frequent) so many words, in questions and answers.
    storage_options
        Options for fsspec.

    Raises
    ------
    InputError
        If a file cannot be read, or a line is malformed.
    ParameterError
        If the method is unknown, or `restrict_vocab` below 1.
    MissingExtraError
        If `lrcos` is asked for and scikit-learn is not installed.
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
    """Add up right answers, and questions asked."""
    pairs = list(counts)
    return sum(right for right, _ in pairs), sum(asked for _, asked in pairs)
