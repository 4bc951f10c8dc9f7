"""Analogies: how often a model answers "a is to b as c is to ?" correctly.

One rule reads the layouts of all published sets: a line of two fields is a pair; a line of four fields is two pairs,
which form a question. If a file lists pairs, as BATS does, each ordered choice of two pairs of a relation is a
question.

All questions are answered in one pass over the vectors, with bounded memory. Methods are vector offsets (3CosAdd,
3CosMul and PairDirection; Levy and Goldberg 2014, "Linguistic regularities in sparse and explicit word
representations") and a classifier (LRCos; Drozd, Gladkova and Matsuoka 2016, "Word embeddings, analogies, and machine
learning: beyond king - man + woman = queen").
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import PurePosixPath
from typing import Any, Literal, NamedTuple, Self

import numpy as np

from daskw2v.config.registry import find
from daskw2v.errors import InputError, ParameterError
from daskw2v.evaluation.reading import file_stem, known_id, malformed_line, read_lines, split_fields
from daskw2v.extras import needed, one_thread
from daskw2v.models.queries.vectors import Vectors
from daskw2v.models.queries.word_queries import COSMUL_EPSILON
from daskw2v.models.stored.blocks import VectorBlock, cut
from daskw2v.store.urls import Location, as_url, filesystem
from daskw2v.types import Float32Array, Float64Array, Int64Array
from daskw2v.vocabulary.vocabulary import Vocabulary

Method = Literal["3cosadd", "3cosmul", "pairdirection", "lrcos"]
Scorer = Callable[[slice], Float32Array]  # from a slice of questions to scores, shape (questions, words)
Pair = tuple[str, tuple[str, ...]]  # a first word, and all correct second words

_SUFFIXES = (".txt", ".tsv", ".txt.gz", ".tsv.gz")
_TAG = re.compile(r"[A-Z$]+_[A-Z$]+")  # MSR's relations: JJ_JJR

_COSINES = 1 << 20  # cosines of a relation's words with a block of words: 4 MB, about the cache of a core
_MIN_WIDTH = 512  # fewest words in a block: in smaller ones the overhead of calls dominates
_SCORES = 1 << 17  # scores of a block of questions with a block of words
_MIN_DISTANCE = 1e-6  # least squared distance of unit vectors that float32 cosines can tell from 0
_QUESTIONS = 1 << 13  # questions whose vectors are in memory at once

# Of LRCos
_SEED = 0  # of the random words
_MAX_EXPONENT = 80  # exp(80) still fits float32
_ITERATIONS = 1000  # more than a regression needs


@dataclass(frozen=True)
class AnalogyResult:
    """Outcome of one analogy set.

    Parameters
    ----------
    accuracy
        Share of correct answers, 0..1; None without questions.
    questions
        Number of questions asked.
    skipped
        Number of questions skipped because a word is not in the model, or not among the `restrict_vocab` most frequent
        words; for `lrcos`, also because no other pair of the category is known.
    categories
        Number of correct answers and of questions, by category.
    groups
        The same by group of categories, as in `Relation`; empty in sets without groups.
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
    """Answer an analogy set. The words a, b and c of a question are excluded from its answers; for `lrcos`, only c.

    Parameters
    ----------
    vectors
        The model.
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
    solver = find(SOLVERS, "method", method)
    if restrict_vocab is not None and restrict_vocab < 1:
        problem = f"restrict_vocab={restrict_vocab!r} is below 1."
        raise ParameterError(problem, "Give at least 1, or None for all words.")
    limit = len(vectors) if restrict_vocab is None else min(restrict_vocab, len(vectors))
    relations = read_relations(url, storage_options)
    known = [KnownRelation.look_up(relation, vectors.vocabulary, limit) for relation in relations]
    solvers = [solver(vectors, relation, limit) for relation in known]
    answered = zip(solvers, solve(vectors, solvers, limit), strict=True)
    categories = {s.known.relation.name: (s.known.count_correct(s.asked, ids), len(ids)) for s, ids in answered}
    groups = {
        group: _add_counts([categories[relation.name] for relation in relations if relation.group == group])
        for group in dict.fromkeys(relation.group for relation in relations if relation.group is not None)
    }
    right, asked = _add_counts(categories.values())
    skipped = sum(s.skipped for s in solvers)
    return AnalogyResult(right / asked if asked else None, asked, skipped, categories, groups)


def _add_counts(counts: Iterable[tuple[int, int]]) -> tuple[int, int]:
    """Return the sums of the numbers of correct answers, and of the numbers of questions."""
    pairs = list(counts)
    return sum(right for right, _ in pairs), sum(asked for _, asked in pairs)


@dataclass(frozen=True)
class Relation:
    """One category of an analogy set.

    Parameters
    ----------
    name
        Name of the category.
    group
        Group of categories: "semantic" or "syntactic" in Google's set, the folder in BATS; None elsewhere.
    pairs
        p distinct pairs: a first word, and all correct second words.
    questions
        Indices in `pairs` of the pair (a, b) and of the pair (c, x) whose second word is asked for, shape (n, 2) int64.
    """

    name: str
    group: str | None
    pairs: list[Pair]
    questions: Int64Array


@dataclass(frozen=True)
class KnownRelation:
    """The part of a relation whose words a model knows.

    Parameters
    ----------
    relation
        The relation with all of its words.
    pairs
        Ids of the first word and of the first known second word of p pairs, shape (p, 2) int64.
    questions
        As in `Relation`, but indices in these `pairs`, and only questions whose pairs are both known.
    answers
        Index of a pair and id of a correct second word, for all known correct second words.
    """

    relation: Relation
    pairs: Int64Array
    questions: Int64Array
    answers: frozenset[tuple[int, int]]

    @classmethod
    def look_up(cls, relation: Relation, vocabulary: Vocabulary, limit: int) -> Self:
        """Look up a relation's words in a vocabulary, as written, then in lower case; only ids below `limit` count."""
        indices = np.full(len(relation.pairs), -1)
        pairs: list[tuple[int, int]] = []
        answers: set[tuple[int, int]] = set()
        for number, (source, targets) in enumerate(relation.pairs):
            first = known_id(vocabulary, source, limit)
            known_targets = [i for target in targets if (i := known_id(vocabulary, target, limit)) >= 0]
            if first >= 0 and known_targets:
                indices[number] = len(pairs)
                answers |= {(len(pairs), i) for i in known_targets}
                pairs.append((first, known_targets[0]))
        questions = indices[relation.questions]
        questions = questions[(questions >= 0).all(axis=1)]
        return cls(relation, np.array(pairs, np.int64).reshape(-1, 2), questions, frozenset(answers))

    def count_correct(self, asked: Int64Array, ids: Int64Array) -> int:
        """Return the number of correct answers to n questions.

        Parameters
        ----------
        asked
            Index of the pair whose second word each question asks for, shape (n,).
        ids
            Id of the word that a model answers, shape (n,).
        """
        return sum(answer in self.answers for answer in zip(asked.tolist(), ids.tolist(), strict=True))


def read_relations(url: Location, storage_options: Mapping[str, Any] | None = None) -> list[Relation]:
    """Read an analogy set.

    Parameters
    ----------
    url
        A file, or a folder with a file for each relation, named .txt, .tsv, .txt.gz or .tsv.gz. Lines are:

        - `: name`: starts a category, as in Google's set. Before the first, the category is the file's name.
        - `a b c d`: a question, as in Google's and MSR's sets. A fifth field such as JJ_JJR, at any place, names its
          category.
        - `a b/c/d`: a pair, as in BATS: b, c and d are all correct for a.

        Tabs or spaces separate fields; blank lines and comments (#) are skipped. Categories of a file in a subfolder
        form a group named after the innermost folder, as in BATS. In any other file with categories named gram..., as
        Google's, these form the group "syntactic", and the other categories the group "semantic".
    storage_options
        Options for fsspec.

    Returns
    -------
    relations
        In the order of the file, or of the names of the files.

    Raises
    ------
    InputError
        If a file cannot be read, a line is malformed, a category mixes pairs and questions, two files have a category
        of the same name, or a folder contains no such file.
    """
    relations: dict[str, Relation] = {}
    for file, folder in _list_files(url, storage_options):
        for relation in _read_file(file, folder, storage_options):
            if relation.name in relations:
                problem = f"Two files in {url} have a category {relation.name!r}."
                raise InputError(problem, "Rename one of them, or move it away.")
            relations[relation.name] = relation
    return list(relations.values())


def _list_files(url: Location, storage_options: Mapping[str, Any] | None) -> Iterator[tuple[str, str | None]]:
    """Yield the URL of each file of a set, and the name of the subfolder with the file; None without a subfolder."""
    url = as_url(url, "file")
    fs, root = filesystem(url, storage_options or {})
    fs.invalidate_cache()
    if not fs.isdir(root):
        yield url, None
        return
    head, *chained = url.split("::")  # as zip://folder::archive.zip
    # Archives made on a Mac have a file ._NAME beside each NAME
    visible = (path for path in fs.find(root) if not PurePosixPath(path).name.startswith("."))
    if not (paths := sorted(path for path in visible if path.endswith(_SUFFIXES))):
        problem = f"{url} contains no file named {', '.join(_SUFFIXES)}."
        raise InputError(problem, "Give the folder that contains the set's files.")
    for path in paths:
        inner = PurePosixPath(path).relative_to(root)
        yield "::".join([f"{head.removesuffix('/')}/{inner}", *chained]), inner.parent.name or None


def _read_file(url: str, folder: str | None, storage_options: Mapping[str, Any] | None) -> list[Relation]:
    """Read the relations of one file; `folder` is their group, or None to derive groups from the relations' names."""
    lines: dict[str, list[list[Pair]]] = {}  # the pairs of each line by category
    category = file_stem(url)
    for number, line in read_lines(url, storage_options):
        if line.startswith(":"):
            category = line[1:].strip()
            lines.setdefault(category, [])
            continue
        tag, pairs = _parse_line(line)
        if not pairs:
            remedy = "Write four words in each line, or a word, a tab and its answers as a/b/c."
            raise malformed_line(url, number, line, "neither a question of four words nor a pair", remedy)
        earlier = lines.setdefault(tag or category, [])
        if earlier and len(earlier[0]) != len(pairs):
            form = "a pair" if len(pairs) == 1 else "a question"
            problem = f"{form}, unlike those of {tag or category!r} above it"
            raise malformed_line(url, number, line, problem, "Write either pairs or questions in a category.")
        earlier.append(pairs)
    google = any(name.startswith("gram") for name in lines)
    kinds = {name: "syntactic" if name.startswith("gram") else "semantic" for name in lines} if google else {}
    return [_make_relation(name, folder or kinds.get(name), parsed) for name, parsed in lines.items()]


def _make_relation(name: str, group: str | None, lines: list[list[Pair]]) -> Relation:
    """Return a relation; each of its lines has one pair, or each has two, which form a question."""
    numbers: dict[Pair, int] = {}
    indices = [[numbers.setdefault(pair, len(numbers)) for pair in pairs] for pairs in lines]
    if lines and len(lines[0]) == 1:
        questions = np.argwhere(~np.eye(len(numbers), dtype=bool))
    else:
        questions = np.array(indices, np.int64).reshape(-1, 2)
    return Relation(name, group, list(numbers), questions)


def _parse_line(line: str) -> tuple[str | None, list[Pair]]:
    """Return the tag of a line, None without one, and the line's pairs: one, two (a question) or none (malformed)."""
    words = split_fields(line, "\t")
    tags = [word for word in words if _TAG.fullmatch(word)] if len(words) == 5 else []
    if len(tags) == 1:
        words.remove(tags[0])
    match words:
        case [a, b, c, d]:
            return (tags[0] if tags else None), [(a, (b,)), (c, (d,))]
        case [source, targets] if answers := tuple(target for target in targets.split("/") if target):
            return None, [(source, answers)]
    return None, []


class Solver(NamedTuple):
    """A method applied to the n questions of one relation.

    Parameters
    ----------
    known
        The relation.
    excluded
        Ids of the words to exclude from each question's answers, shape (n, k).
    asked
        Index in `known.pairs` of the pair whose second word each question asks for, shape (n,).
    skipped
        Number of the relation's questions that are not among the n.
    scorer_on
        Function from a block of words to the function that scores these words for a slice of questions, shape
        (questions, words). The caller may overwrite the scores.
    """

    known: KnownRelation
    excluded: Int64Array
    asked: Int64Array
    skipped: int
    scorer_on: Callable[[VectorBlock], Scorer]


def solve(vectors: Vectors, solvers: Sequence[Solver], limit: int) -> list[Int64Array]:
    """Return the answers of each solver to its n questions, shape (n,): ids below `limit`; -1 if all are excluded.

    Of words with the same score, the more frequent one is the answer.
    """
    ids = [np.full(len(solver.asked), -1) for solver in solvers]
    best = [np.full(len(solver.asked), -np.inf, np.float32) for solver in solvers]
    n_words = max((solver.known.pairs.size for solver in solvers), default=0)
    width = max(_MIN_WIDTH, _COSINES // max(1, n_words))
    for block in vectors.blocks(limit, width):
        for solver, answers, highest in zip(solvers, ids, best, strict=True):
            if not len(answers):
                continue
            score, excluded = solver.scorer_on(block), block.columns(solver.excluded)
            for rows in cut(len(answers), max(1, _SCORES // width)):
                scores = score(rows)
                questions, words = np.nonzero(excluded[rows] >= 0)
                scores[questions, excluded[rows][questions, words]] = -np.inf
                columns = scores.argmax(axis=1)
                answer, reached = block.ids[columns], scores[np.arange(len(columns)), columns]
                earlier = answer < answers[rows]  # of equal scores, the more frequent word
                better = (reached > highest[rows]) | ((reached == highest[rows]) & earlier)
                answers[rows][better] = answer[better]
                highest[rows][better] = reached[better]
    return ids


class _OffsetMethod(NamedTuple):
    """A method of vector offsets: the parts of the score of x as the answer to "a is to b as c is to x".

    Parameters
    ----------
    pair
        Computes the term of the pair (a, b) from cos(x, a) and cos(x, b).
    word
        Computes the term of c from cos(x, c).
    join
        Combines both terms into the score.
    from_word
        Whether (b - a) c is subtracted from the pair's term, which is then (b - a) (x - c).
    """

    pair: Callable[[Float32Array, Float32Array], Float32Array]
    word: Callable[[Float32Array], Float32Array]
    join: np.ufunc
    from_word: bool = False


def _difference(to_a: Float32Array, to_b: Float32Array) -> Float32Array:
    """Return cos(x, b) - cos(x, a)."""
    return to_b - to_a


def _shifted(cosines: Float32Array) -> Float32Array:
    """Return cosines mapped from -1..1 to 0..1."""
    return (cosines + np.float32(1)) / np.float32(2)


def _ratio(to_a: Float32Array, to_b: Float32Array) -> Float32Array:
    """Return cos(x, b) / (cos(x, a) + 0.001), both cosines mapped to 0..1."""
    return _shifted(to_b) / (_shifted(to_a) + np.float32(COSMUL_EPSILON))


def _closeness(to_c: Float32Array) -> Float32Array:
    """Return 1 / |x - c| of unit vectors from cos(x, c): their distance is sqrt(2 - 2 cos)."""
    squared = np.float32(2) - np.float32(2) * to_c
    closeness: Float32Array = np.float32(1) / np.sqrt(np.maximum(squared, np.float32(_MIN_DISTANCE)))
    return closeness


# The lengths of b - a + c and of b - a are omitted, as they are the same for all x.
_OFFSETS = {
    "3cosadd": _OffsetMethod(_difference, np.positive, np.add),
    "3cosmul": _OffsetMethod(_ratio, _shifted, np.multiply),
    "pairdirection": _OffsetMethod(_difference, _closeness, np.multiply, from_word=True),
}


def _offset_solver(method: _OffsetMethod, vectors: Vectors, known: KnownRelation, limit: int) -> Solver:
    """Return the solver of a method of vector offsets; `limit` is not used.

    The scores of a question "a is to b as c is to x" combine two rows of scores: one of the pair (a, b), one of the
    word c. Each row is computed once for all questions of the relation that use it.
    """
    sources, targets = vectors.units(known.pairs[:, 0]), vectors.units(known.pairs[:, 1])
    first, second = known.questions.T
    products = _dot_offsets(targets - sources, sources, known) if method.from_word else None

    def scorer_on(block: VectorBlock) -> Scorer:
        to_sources, to_targets = block.cosines(sources), block.cosines(targets)
        pair, word = method.pair(to_sources, to_targets), method.word(to_sources)

        def scores(rows: slice) -> Float32Array:
            combined: Float32Array = pair[first[rows]]
            if products is not None:
                combined -= products[rows, None]
            method.join(combined, word[second[rows]], out=combined)
            return combined

        return scores

    excluded = np.concatenate([known.pairs[first], known.pairs[second, :1]], axis=1)
    return Solver(known, excluded, second, len(known.relation.questions) - len(second), scorer_on)


def _dot_offsets(offsets: Float32Array, units: Float32Array, known: KnownRelation) -> Float32Array:
    """Return the dot product (b - a) c of each question of a relation, shape (n,).

    Parameters
    ----------
    offsets, units
        Offset b - a, of unit vectors, and unit vector of the first word of each pair, both of shape (p, D).
    known
        The relation.
    """
    blocks = [known.questions[rows].T for rows in cut(len(known.questions), _QUESTIONS)]
    products = [np.einsum("ij,ij->i", offsets[first], units[second]) for first, second in blocks]
    return np.concatenate([np.empty(0, np.float32), *products])


def _lrcos_solver(vectors: Vectors, known: KnownRelation, limit: int) -> Solver:
    """Return the solver of LRCos, which asks one question for each pair: its first word c. The answer may not be c.

    A logistic regression separates the relation's second words, say capitals, from other words. The answer for a first
    word c is the word x with the highest P(x is in the class) cos(x, c).

    The regression for a pair is fitted on all other pairs that the model knows. Each of them gives three examples,
    unit vectors: its second word is positive; its first word and one random word among the first `limit` are
    negative. The random words have the same seed in each relation. The regression is scikit-learn's
    `LogisticRegression(class_weight="balanced")`, as in the authors' program (vecto), which however repeats the first
    words four times.

    Parameters
    ----------
    vectors
        The model.
    known
        A relation. A single pair is skipped: there is no other pair to fit the regression on.
    limit
        Number of words to draw random words from, the most frequent ones.

    Raises
    ------
    MissingExtraError
        If scikit-learn is not installed.
    """
    n = len(known.pairs) if len(known.pairs) > 1 else 0
    weights, biases = _regressions(vectors, known, limit) if n else (np.empty((0, 0), np.float32),) * 2
    sources = vectors.units(known.pairs[:, 0])

    def scorer_on(block: VectorBlock) -> Scorer:
        against = np.minimum(-block.cosines(weights) - biases, _MAX_EXPONENT)
        scores: Float32Array = block.cosines(sources) / (1 + np.exp(against))
        return lambda rows: scores[rows]

    return Solver(known, known.pairs[:n, :1], np.arange(n), len(known.relation.pairs) - n, scorer_on)


def _regressions(vectors: Vectors, known: KnownRelation, limit: int) -> tuple[Float32Array, Float32Array]:
    """Return the weights and the bias of the regression without each of p pairs, shapes (p, D) and (p, 1)."""
    n = len(known.pairs)
    drawn = np.random.default_rng(_SEED).integers(limit, size=n)
    examples = vectors.units(np.concatenate([known.pairs.T.ravel(), drawn])).astype(np.float64).reshape(3, n, -1)
    is_positive = np.repeat([False, True, False], n - 1)
    regression = needed("sklearn.linear_model", "evaluation").LogisticRegression
    model = regression(class_weight="balanced", max_iter=_ITERATIONS)
    weights: Float64Array = np.empty((n, examples.shape[2] + 1))
    with one_thread():
        for omitted in range(n):
            fitted = np.delete(examples, omitted, axis=1)
            model.fit(fitted.reshape(3 * (n - 1), -1), is_positive)
            weights[omitted] = *model.coef_[0], *model.intercept_
    return weights[:, :-1].astype(np.float32), weights[:, -1:].astype(np.float32)


SOLVERS: dict[str, Callable[[Vectors, KnownRelation, int], Solver]] = {
    **{name: partial(_offset_solver, method) for name, method in _OFFSETS.items()},
    "lrcos": _lrcos_solver,
}
