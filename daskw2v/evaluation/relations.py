"""Relations between words, such as country and capital, in the layouts of published analogy sets.

One rule reads them all: a line of two fields is a pair, a line of four is two pairs that make a question. Where a file
lists pairs, as BATS does, each two of a relation make a question in both orders.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, Self

import numpy as np

from daskw2v.errors import InputError
from daskw2v.evaluation.questions import fields, known_id, read_lines, stem
from daskw2v.locations import Location, as_url, filesystem
from daskw2v.models.ranking import Ids
from daskw2v.vocabulary.vocabulary import Vocabulary

Pair = tuple[str, tuple[str, ...]]  # a word, and all that stand in the relation to it

_SUFFIXES = (".txt", ".tsv", ".txt.gz", ".tsv.gz")
_TAG = re.compile(r"[A-Z$]+_[A-Z$]+")  # MSR's relations: JJ_JJR


@dataclass(frozen=True)
class Relation:
    """One category of an analogy set.

    Parameters
    ----------
    name
        Its name in the set.
    group
        What it is part of: in Google's set "semantic" or "syntactic", in BATS the folder; None elsewhere.
    pairs
        p distinct pairs: a word, and all that are right beside it.
    questions
        Which pair is given and of which the second word is asked for, shape (n, 2) int64.
    """

    name: str
    group: str | None
    pairs: list[Pair]
    questions: Ids


@dataclass(frozen=True)
class KnownRelation:
    """What a model knows of a relation.

    Parameters
    ----------
    relation
        The whole of it.
    pairs
        The first word's id and that of the first word beside it that is known, of p pairs, shape (p, 2) int64.
    questions
        Which pair is given and which is asked for, shape (n, 2) int64.
    answers
        The place of a pair and the id of a word that is right beside its first, for all such words.
    """

    relation: Relation
    pairs: Ids
    questions: Ids
    answers: frozenset[tuple[int, int]]

    @classmethod
    def of(cls, relation: Relation, vocabulary: Vocabulary, limit: int) -> Self:
        """Look up a relation's words among the first `limit`, as written, then lower-cased."""
        places = np.full(len(relation.pairs), -1)
        pairs: list[tuple[int, int]] = []
        answers: set[tuple[int, int]] = set()
        for k, (source, targets) in enumerate(relation.pairs):
            first = known_id(vocabulary, source, limit)
            beside = [i for target in targets if (i := known_id(vocabulary, target, limit)) is not None]
            if first is not None and beside:
                places[k] = len(pairs)
                answers |= {(len(pairs), i) for i in beside}
                pairs.append((first, beside[0]))
        questions = places[relation.questions]
        questions = questions[(questions >= 0).all(axis=1)]
        return cls(relation, np.array(pairs, np.int64).reshape(-1, 2), questions, frozenset(answers))

    def count_right(self, asked: Ids, given: Ids) -> int:
        """Return how many of the answers given, ids of shape (n,), are right for the pairs asked for, shape (n,)."""
        return sum(pair in self.answers for pair in zip(asked.tolist(), given.tolist(), strict=True))


def read_relations(url: Location, storage_options: Mapping[str, Any] | None = None) -> list[Relation]:
    """Read an analogy set.

    Parameters
    ----------
    url
        A file, or a folder with a file for each relation, whose names in .txt or .tsv, packed as .gz or not. Lines are:

        - `: name`: what follows belongs to this category, as in Google's set. Above the first, it has the file's name.
        - `a b c d`: a question, as in Google's set and in MSR's. A fifth field like JJ_JJR, anywhere, is its category.
        - `a b/c/d`: a pair, as in BATS; each word after the first is right.

        Fields are parted by tabs or blanks; blank lines and comments (#) are left out. Google's categories named
        gram... are syntactic, the others of such a file semantic.
    storage_options
        Options for fsspec.

    Returns
    -------
    relations
        In the order of the file, or of the names of the files.

    Raises
    ------
    InputError
        If a file cannot be read, a line is malformed, a category has pairs as well as questions, two files have one
        name, or a folder holds no such file.
    """
    relations: dict[str, Relation] = {}
    for file, folder in _files(url, storage_options):
        for relation in _read_file(file, folder, storage_options):
            if relation.name in relations:
                raise InputError(
                    f"Two files below {url} have a relation {relation.name!r}.", "Rename one of them, or move it away."
                )
            relations[relation.name] = relation
    return list(relations.values())


def _files(url: Location, storage_options: Mapping[str, Any] | None) -> Iterator[tuple[str, str | None]]:
    """Yield a file's URL; or those of all files below a folder, each with the name of the folder it lies in."""
    url = as_url(url, "file")
    fs, root = filesystem(url, storage_options or {})
    fs.invalidate_cache()
    if not fs.isdir(root):
        yield url, None
        return
    head, *chained = url.split("::")  # as zip://folder::archive.zip
    paths = sorted(path for path in fs.find(root) if path.endswith(_SUFFIXES) and not _hidden(path))
    if not paths:
        raise InputError(f"{url} holds no file {', '.join(_SUFFIXES)}.", "Give the folder of the relations' files.")
    for path in paths:
        inner = PurePosixPath(path).relative_to(root)
        parent = inner.parent.name or None
        yield "::".join([f"{head}{'' if head.endswith('/') else '/'}{inner}", *chained]), parent


def _hidden(path: str) -> bool:
    return PurePosixPath(path).name.startswith(".")  # archives made on a Mac hold ._name beside name


@dataclass
class _Draft:
    """A relation while its lines are read."""

    pairs: dict[Pair, int] = field(default_factory=dict)
    questions: list[tuple[int, ...]] = field(default_factory=list)
    lists_pairs: bool = False

    def add(self, pairs: list[Pair]) -> bool:
        """Take a line's one or two pairs; tell whether the lines above were of the same form."""
        if self.pairs and self.lists_pairs != (len(pairs) == 1):
            return False
        self.lists_pairs = len(pairs) == 1
        places = tuple(self.pairs.setdefault(pair, len(self.pairs)) for pair in pairs)
        if not self.lists_pairs:
            self.questions.append(places)
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
                "Write four words in each line, or a word, a tab and the words beside it as a/b/c.",
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
    """Return a line's tag if it has one, and its pairs: one, or two that make a question; none where malformed."""
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
