"""Relations between words, such as country and capital, read from the layouts of published analogy sets.

One rule reads all of them: a line of two fields is a pair; a line of four fields is two pairs, which form a question.
If a file lists pairs, as BATS does, each ordered choice of two pairs of a relation is a question.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, Self

import numpy as np

from daskw2v.errors import InputError
from daskw2v.evaluation.reading import fields, known_id, read_lines, stem
from daskw2v.store.urls import Location, as_url, filesystem
from daskw2v.types import Int64Array
from daskw2v.vocabulary.vocabulary import Vocabulary

Pair = tuple[str, tuple[str, ...]]  # a first word, and all correct second words

_SUFFIXES = (".txt", ".tsv", ".txt.gz", ".tsv.gz")
_TAG = re.compile(r"[A-Z$]+_[A-Z$]+")  # MSR's relations: JJ_JJR


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
        Indices of the pair (a, b) and of the pair (c, x) whose second word is asked for, shape (n, 2) int64.
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
        The whole relation.
    pairs
        Ids of the first word and of the first known second word of p pairs, shape (p, 2) int64.
    questions
        Indices of the pair (a, b) and of the pair (c, x) whose second word is asked for, shape (n, 2) int64.
    answers
        Index of a pair and id of a correct second word, for all correct second words.
    """

    relation: Relation
    pairs: Int64Array
    questions: Int64Array
    answers: frozenset[tuple[int, int]]

    @classmethod
    def of(cls, relation: Relation, vocabulary: Vocabulary, limit: int) -> Self:
        """Look up a relation's words among the first `limit` ids, as written, then in lower case."""
        indices = np.full(len(relation.pairs), -1)
        pairs: list[tuple[int, int]] = []
        answers: set[tuple[int, int]] = set()
        for k, (source, targets) in enumerate(relation.pairs):
            first = known_id(vocabulary, source, limit)
            beside = [i for target in targets if (i := known_id(vocabulary, target, limit)) is not None]
            if first is not None and beside:
                indices[k] = len(pairs)
                answers |= {(len(pairs), i) for i in beside}
                pairs.append((first, beside[0]))
        questions = indices[relation.questions]
        questions = questions[(questions >= 0).all(axis=1)]
        return cls(relation, np.array(pairs, np.int64).reshape(-1, 2), questions, frozenset(answers))

    def count_right(self, asked: Int64Array, ids: Int64Array) -> int:
        """Return the number of correct answers: `ids` are the answers, `asked` indices of pairs, both of shape (n,)."""
        return sum(pair in self.answers for pair in zip(asked.tolist(), ids.tolist(), strict=True))


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

        Tabs or spaces separate fields; blank lines and comments (#) are skipped. In a file with categories named
        gram..., as Google's, these are the group "syntactic" and the others the group "semantic".
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
    for file, folder in _files(url, storage_options):
        for relation in _read_file(file, folder, storage_options):
            if relation.name in relations:
                raise InputError(
                    f"Two files in {url} have a category {relation.name!r}.", "Rename one of them, or move it away."
                )
            relations[relation.name] = relation
    return list(relations.values())


def _files(url: Location, storage_options: Mapping[str, Any] | None) -> Iterator[tuple[str, str | None]]:
    """Yield the URL of a file, or of all files below a folder, with the name of the subfolder that a file is in."""
    url = as_url(url, "file")
    fs, root = filesystem(url, storage_options or {})
    fs.invalidate_cache()
    if not fs.isdir(root):
        yield url, None
        return
    head, *chained = url.split("::")  # as zip://folder::archive.zip
    paths = sorted(path for path in fs.find(root) if path.endswith(_SUFFIXES) and not _hidden(path))
    if not paths:
        raise InputError(
            f"{url} contains no file named {', '.join(_SUFFIXES)}.", "Give the folder that contains the set's files."
        )
    for path in paths:
        inner = PurePosixPath(path).relative_to(root)
        parent = inner.parent.name or None
        yield "::".join([f"{head}{'' if head.endswith('/') else '/'}{inner}", *chained]), parent


def _hidden(path: str) -> bool:
    return PurePosixPath(path).name.startswith(".")  # archives made on a Mac have a ._name beside each name


@dataclass
class _Draft:
    """A relation while its lines are read."""

    pairs: dict[Pair, int] = field(default_factory=dict)
    questions: list[tuple[int, ...]] = field(default_factory=list)
    lists_pairs: bool = False

    def add(self, pairs: list[Pair]) -> bool:
        """Add a line's one or two pairs; return False if the lines before it were of the other form."""
        if self.pairs and self.lists_pairs != (len(pairs) == 1):
            return False
        self.lists_pairs = len(pairs) == 1
        indices = tuple(self.pairs.setdefault(pair, len(self.pairs)) for pair in pairs)
        if not self.lists_pairs:
            self.questions.append(indices)
        return True

    def relation(self, name: str, group: str | None) -> Relation:
        if self.lists_pairs:
            questions = np.argwhere(~np.eye(len(self.pairs), dtype=bool))
        else:
            questions = np.array(self.questions, np.int64).reshape(-1, 2)
        return Relation(name, group, list(self.pairs), questions)


def _read_file(url: str, folder: str | None, storage_options: Mapping[str, Any] | None) -> list[Relation]:
    drafts: dict[str, _Draft] = {}
    category = stem(url)
    for number, line in read_lines(url, storage_options):
        if line.startswith(":"):
            category = line[1:].strip()
            drafts.setdefault(category, _Draft())
            continue
        tag, pairs = _parse(line)
        if not pairs:
            raise InputError(
                f"Line {number} of {url} is neither a question of four words nor a pair: {line[:60]!r}.",
                "Write four words in each line, or a word, a tab and its answers as a/b/c.",
            )
        if not drafts.setdefault(tag or category, _Draft()).add(pairs):
            raise InputError(
                f"Line {number} of {url} is {'a pair' if len(pairs) == 1 else 'a question'}, unlike those of "
                f"{tag or category!r} above it: {line[:60]!r}.",
                "Write either pairs or questions in a category.",
            )
    google = any(name.startswith("gram") for name in drafts)
    kinds = {name: "syntactic" if name.startswith("gram") else "semantic" for name in drafts} if google else {}
    return [draft.relation(name, folder or kinds.get(name)) for name, draft in drafts.items()]


def _parse(line: str) -> tuple[str | None, list[Pair]]:
    """Return a line's tag, if any, and its pairs: one, two (a question), or none (malformed)."""
    words = fields(line, "\t")
    tags = [word for word in words if _TAG.fullmatch(word)] if len(words) == 5 else []
    if len(tags) == 1:
        words.remove(tags[0])
    match words:
        case [a, b, c, d]:
            return (tags[0] if tags else None), [(a, (b,)), (c, (d,))]
        case [source, targets] if beside := tuple(target for target in targets.split("/") if target):
            return None, [(source, beside)]
    return None, []
