"""The word-context matrix: for each word the same number of contexts, sampled from all its windows.

W2V-CL trains on it in place of the text (Li et al. 2019, section 3): a frequent word has no more pairs than a rare one.
Row i holds contexts of word i in random order. Where the word has fewer pairs than the row has columns, each stretch of
so many columns holds all of them; where it has none, the row holds NO_CONTEXT.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from distributed import Client

from daskw2v.errors import StoreError
from daskw2v.intact import StoredArray
from daskw2v.progress import Listener, Progress, silent
from daskw2v.sampling.dealing import Integers
from daskw2v.sampling.growth import RULES, check_rules, describe_text, find_new_text
from daskw2v.sampling.matrix_tasks import (
    Build,
    band_of,
    carry_rows,
    declare,
    fill_band,
    match_base,
    sample_text,
)
from daskw2v.sampling.run import Run
from daskw2v.sampling.segments import cut
from daskw2v.shards.layout import Corpus, digest, groups_exist
from daskw2v.shards.tasks import new_attempt, run_task, run_tasks
from daskw2v.storage import Store, open_array
from daskw2v.wording import counted

PAIRS = 1 << 22  # sampled by one task, at most: 32 MB of entries
_HOME, _MATRIX = "matrices", "matrix"


@dataclass(frozen=True)
class ContextMatrix:
    """A finished word-context matrix.

    Parameters
    ----------
    home
        Its folder.
    build
        The attempt that counts.
    words, context_size
        Its rows and columns.
    text_words, pairs
        Words of the vocabulary in the text that it was sampled from, before subsampling; and the pairs of that text.
    seconds
        What building it took.
    """

    home: Store
    build: str
    words: int
    context_size: int
    text_words: int
    pairs: int
    seconds: float

    @property
    def place(self) -> Store:
        """Where its arrays lie."""
        return self.home / self.build / _MATRIX

    @property
    def name(self) -> str:
        """Its identity, by which another one goes on from it: `Params.base_matrix`."""
        return self.home.name


def build_matrix(client: Client, run: Run, listener: Listener = silent) -> ContextMatrix:
    """Sample the word-context matrix of a run's text on the cluster; one that is there already is returned.

    Windows, subsampling and unknown words are those of the first epoch. With `base_matrix`, only text that the base has
    not seen is read. A task holds PAIRS pairs, or a band of rows and what one piece of text adds to it.

    Parameters
    ----------
    client
        Where to run.
    run
        Text, words and Params.
    listener
        Is told the tasks done.

    Raises
    ------
    StoreError
        If there is no such base.
    ParameterError
        If the base was made by other rules.
    InputError
        If the corpus holds text of the base, but does not begin with all of it.
    VocabularyError
        If the vocabulary lacks words of the base.
    """
    corpus, params, vocabulary = Corpus.load(run.work, run.corpus), run.params, run.vocabulary
    rules = {name: getattr(params, name) for name in RULES}
    asked = [corpus.identity, vocabulary.identity, rules, params.seed, params.base_matrix]
    home = run.work / _HOME / digest(asked)
    manifest = _read_manifest(home)
    if manifest is not None:
        return _matrix(home, manifest)
    began = time.monotonic()
    start, text, base = 0, describe_text(corpus.identity, corpus.sources, corpus.n_tokens, params), None
    if params.base_matrix is not None:
        base = _need_manifest(run.work / _HOME / params.base_matrix)
        check_rules(base, params)
        start, text = find_new_text(base["text"], corpus, params)
    # What builds that were cut short left behind stays: another client may be writing it now.
    build = Build(run, home / new_attempt(), 0 if base is None else base["generation"] + 1)
    declare(build)
    text_words, pairs = _run(client, build, base, list(cut(start, corpus.n_tokens, _stretch(params.window))), listener)
    manifest = {
        "build": build.place.name,
        "words": vocabulary.size,
        "text_words": text_words,
        "pairs": pairs,
        "generation": build.generation,
        **rules,
        "seed": params.seed,
        "base": params.base_matrix,
        "corpus": corpus.identity,
        "vocabulary": vocabulary.identity,
        "text": text,
        "seconds": round(time.monotonic() - began, 3),
    }
    home.write_manifest(manifest)
    for temporary in ("text", "base"):
        (build.place / temporary).remove()
    listener(Progress("matrix", 1, 1, "matrix", message=f"word-context matrix {home.name}"))
    return _matrix(home, manifest)


def _stretch(window: int) -> int:
    """Return the positions of a piece of text."""
    return max(1, PAIRS // (2 * window))


def _run(
    client: Client,
    build: Build,
    base: dict[str, Any] | None,
    stretches: Sequence[tuple[int, int]],
    listener: Listener,
) -> tuple[int, int]:
    """Run all tasks; return the words of the vocabulary, and the pairs, of all text."""
    ranges: list[tuple[Any, ...]] = []
    if base is not None:
        place = build.run.work / _HOME / str(build.run.params.base_matrix) / base["build"] / _MATRIX
        ids = run_task(client, "match", match_base, build, place)
        ranges = [(place, ids, *rows) for rows in cut(0, base["words"], band_of(base["words"], base["context_size"]))]
    done, total = 0, len(stretches) + len(ranges) + build.n_bands

    def call(stage: str, function: Callable[..., Any], jobs: Sequence[tuple[Any, ...]]) -> list[Any]:
        nonlocal done
        results: dict[int, Any] = {}
        for number, result in run_tasks(client, stage, function, {i: (build, i, *job) for i, job in enumerate(jobs)}):
            results[number], done = result, done + 1
            message = f"{stage}: {len(results)} of {counted(len(jobs), 'task')}"
            listener(Progress("matrix", done, total, "tasks", message=message))
        return [results[number] for number in range(len(jobs))]

    listener(Progress("matrix", 0, total, "tasks", message=f"{counted(len(stretches), 'piece')} of text"))
    sampled = call("sample", sample_text, stretches)
    texts = [f"text/{i}/{attempt}" for i, (attempt, _) in enumerate(sampled)]
    bases = [f"base/{i}/{attempt}" for i, attempt in enumerate(call("carry", carry_rows, ranges))]
    pairs = sum(call("fill", fill_band, [(texts, bases)] * build.n_bands))
    return sum(words for _, words in sampled) + (0 if base is None else base["text_words"]), pairs


def open_matrix(home: Store) -> ContextMatrix:
    """Open the matrix that lies at `home`.

    Raises
    ------
    StoreError
        If none was finished there.
    """
    return _matrix(home, _need_manifest(home))


def _matrix(home: Store, manifest: dict[str, Any]) -> ContextMatrix:
    names = ("build", "words", "context_size", "text_words", "pairs", "seconds")
    return ContextMatrix(home, *(manifest[name] for name in names))


def _read_manifest(home: Store) -> dict[str, Any] | None:
    manifest = home.read_manifest()
    if manifest is None or not groups_exist(home, [f"{manifest['build']}/{_MATRIX}"]):
        return None
    return manifest


def _need_manifest(home: Store) -> dict[str, Any]:
    manifest = _read_manifest(home)
    if manifest is None:
        raise StoreError(
            f"{home.url} holds no finished word-context matrix.",
            "Build it first, in the same work directory; base_matrix is its name.",
        )
    return manifest


def read_contexts(place: Store, rows: tuple[int, int], columns: tuple[int, int]) -> Integers:
    """Read contexts of words: a rectangle of the matrix that lies at `place`.

    Parameters
    ----------
    place
        `ContextMatrix.place`.
    rows, columns
        First, and past the last.

    Returns
    -------
    contexts
        Ids, or NO_CONTEXT, shape (rows, columns) int32.

    Raises
    ------
    StoreError
        If it is gone, or some of it.
    """
    width = _open(place).chunks[1]
    start, stop = columns
    if stop - start >= width:
        return _read(place, rows, start, stop)
    panels = range(start // width, -(-stop // width))
    parts = [_panel(place, rows, i)[:, max(0, start - i * width) : stop - i * width] for i in panels]
    return np.concatenate(parts, axis=1)


@lru_cache(maxsize=8)
def _open(place: Store) -> StoredArray:
    """Open the contexts. Only a cache: what lies there never changes."""
    return open_array(place.open_group(), "contexts")


@lru_cache(maxsize=2)
def _panel(place: Store, rows: tuple[int, int], number: int) -> Integers:
    """Read the columns of a row of chunks. Only a cache: the next columns lie in the same chunks."""
    width = _open(place).chunks[1]
    return _read(place, rows, number * width, (number + 1) * width)


def _read(place: Store, rows: tuple[int, int], start: int, stop: int) -> Integers:
    return _open(place)[slice(*rows), start:stop]
