"""The word-context matrix: the same number of contexts for each word, sampled from all its windows.

W2V-CL trains on it instead of the text (Li et al. 2019, section 3), so that frequent words have no more pairs than rare
ones. Row i has contexts of word i in random order. If the word has n pairs, fewer than columns, the row repeats all of
them in every n columns; if it has none, the row has NO_CONTEXT.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np
from distributed import Client

from daskw2v.cluster.tasks import run_tasks
from daskw2v.corpus.files import Source
from daskw2v.errors import StoreError, counted
from daskw2v.progress import Listener, Progress, silent
from daskw2v.sampling.growth import check_rules, describe_text, find_new_text, sampling_rules
from daskw2v.sampling.matrix_tasks import Build, band_of, carry_rows, declare, fill_band, match_base, sample_text
from daskw2v.sampling.run import Run
from daskw2v.sampling.segments import cut
from daskw2v.sampling.settings import SampledContexts
from daskw2v.shards.layout import Corpus, digest
from daskw2v.store.arrays import StoredArray, finish_arrays, open_array
from daskw2v.store.limits import refused, typed
from daskw2v.store.stage import Layout, OpenStage, Stage, groups_exist
from daskw2v.store.storage import MANIFEST, Store
from daskw2v.types import Int32Array

PAIRS = 1 << 22  # most pairs sampled by one task: 32 MB of entries
LAYOUT = Layout(
    "matrices/<name>/<build>",
    remedy="Restore {url} from a copy. Or delete it: then the same command samples it again from the same text. If it "
    "is the base_matrix, build_matrix does so, with the text and the Params that it had. Check the disk.",
)
_MATRIX = "matrix"


@dataclass(frozen=True)
class ContextMatrix:
    """A finished word-context matrix.

    Parameters
    ----------
    home
        Folder of the matrix.
    build
        The valid attempt.
    words, context_size
        Number of rows and of columns.
    text_words, pairs
        Number of known tokens in the text before subsampling, and of pairs.
    seconds
        Time to build it.
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
        """The Zarr group of its arrays."""
        return self.home / self.build / _MATRIX

    @property
    def name(self) -> str:
        """Identity of the matrix, for `SampledContexts.base_matrix` of a later one."""
        return self.home.name


def build_matrix(client: Client, run: Run, listener: Listener = silent) -> ContextMatrix:
    """Sample the word-context matrix of a run's text on the cluster, or return it if it was built before.

    Windows and subsampling are those of the first epoch. With `base_matrix`, only text that is new since the base is
    read. A task holds PAIRS pairs, or a band of rows and the pairs of one piece of text for it.

    Parameters
    ----------
    client
        The cluster to run on.
    run
        Text, words and Params.
    listener
        Called with the progress.

    Raises
    ------
    StoreError
        If the base does not exist.
    ParameterError
        If the base was sampled by other rules.
    InputError
        If the corpus has text of the base, but does not begin with all of it.
    VocabularyError
        If the vocabulary lacks words of the base.
    """
    corpus, params = Corpus.load(run.work, run.corpus), run.params
    base = SampledContexts.of(params).base_matrix
    asked = [corpus.identity, run.vocabulary.identity, sampling_rules(params), params.seed, base]
    home = run.work / LAYOUT.folder / digest(asked)
    stage = Stage(run.work, home, partial(run_tasks, client), listener, "matrix")
    return stage.make(partial(_find, home), partial(_build, corpus, run))


def _build(corpus: Corpus, run: Run, stage: OpenStage) -> ContextMatrix:
    began, params, vocabulary = time.monotonic(), run.params, run.vocabulary
    earlier = SampledContexts.of(params).base_matrix
    start, text, base = 0, describe_text(corpus.identity, corpus.sources, corpus.n_tokens, params), None
    if earlier is not None:
        base = read_base(run.work / LAYOUT.folder / earlier)
        check_rules(base, params)
        start, text = find_new_text(base["text"], corpus, params)
    build = Build(run, stage.attempt(), 0 if base is None else base["generation"] + 1)
    declare(build)
    text_words, pairs = _run(stage, build, base, list(cut(start, corpus.n_tokens, _stretch(params.window))))
    manifest = {
        "build": build.place.name,
        "words": vocabulary.size,
        "text_words": text_words,
        "pairs": pairs,
        "generation": build.generation,
        **sampling_rules(params),
        "seed": params.seed,
        "base": earlier,
        "corpus": corpus.identity,
        "vocabulary": vocabulary.identity,
        "text": text,
        "seconds": round(time.monotonic() - began, 3),
    }
    stage.finish(manifest, [f"{build.place.name}/{_MATRIX}"])
    stage.listener(Progress("matrix", 1, 1, "matrix", message=f"word-context matrix {stage.home.name}"))
    return _matrix(run.work / LAYOUT.folder / stage.home.name, manifest)  # not guarded by the lease, which ends


def _stretch(window: int) -> int:
    """Return the number of positions in a piece of text."""
    return max(1, PAIRS // (2 * window))


def _run(
    stage: OpenStage, build: Build, base: dict[str, Any] | None, stretches: Sequence[tuple[int, int]]
) -> tuple[int, int]:
    """Run all tasks; return the number of known tokens and of pairs of all text."""
    parts = [] if base is None else list(cut(0, base["words"], band_of(base["words"], base["context_size"])))
    total = len(stretches) + len(parts) + build.n_bands + (base is not None)
    stage.expect(total, message=f"{counted(len(stretches), 'piece')} of text")

    def call(step: str, function: Callable[..., Any], jobs: Sequence[tuple[Any, ...]]) -> list[Any]:
        return stage.map(step, function, [(build, number, *job) for number, job in enumerate(jobs)])

    ranges: list[tuple[Any, ...]] = []
    if base is not None:
        place = (
            build.run.work
            / LAYOUT.folder
            / str(SampledContexts.of(build.run.params).base_matrix)
            / base["build"]
            / _MATRIX
        )
        (ids,) = stage.map("match", match_base, [(build, place)])
        ranges = [(place, ids, *part) for part in parts]
    sampled = call("sample", sample_text, stretches)
    texts = [f"text/{i}/{attempt}" for i, (attempt, _) in enumerate(sampled)]
    bases = [f"base/{i}/{attempt}" for i, attempt in enumerate(call("carry", carry_rows, ranges))]
    filled = call("fill", fill_band, [(texts, bases)] * build.n_bands)
    finish_arrays((build.place / _MATRIX).open_group(writable=True), [written for _, written in filled])
    pairs = sum(n for n, _ in filled)
    return sum(words for _, words in sampled) + (0 if base is None else base["text_words"]), pairs


def open_matrix(home: Store) -> ContextMatrix:
    """Open the matrix in the folder `home`.

    Raises
    ------
    StoreError
        If the folder has no finished matrix.
    """
    return _matrix(home, _need_manifest(home))


def _matrix(home: Store, manifest: dict[str, Any]) -> ContextMatrix:
    fields = ContextMatrix.__dataclass_fields__.keys() & manifest.keys()
    return typed(ContextMatrix, {name: manifest[name] for name in fields}, f"{home.url}/{MANIFEST}", home=home)


def _find(home: Store) -> ContextMatrix | None:
    manifest = _read_manifest(home)
    return None if manifest is None else _matrix(home, manifest)


def _read_manifest(home: Store) -> dict[str, Any] | None:
    manifest = home.read_manifest()
    if manifest is None or not groups_exist(home, [f"{_matrix(home, manifest).build}/{_MATRIX}"]):
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


def read_base(home: Store) -> dict[str, Any]:
    """Return the manifest of a matrix that is to be extended.

    Raises
    ------
    StoreError
        If the folder has no finished matrix, or its manifest lacks what a base must say.
    """
    match manifest := _need_manifest(home):
        case {
            "generation": int(generation),
            "text": {"identity": str(), "reading": str(), "tokens": int(tokens), "sources": [*sources]},
        } if 0 <= generation < 1 << 31 and 0 <= tokens < 1 << 63:
            for source in sources:
                typed(Source, source, f"{home.url}/{MANIFEST}")
            return manifest
    raise refused(f"{home.url}/{MANIFEST}", "does not describe the text of a matrix")


def read_contexts(place: Store, rows: tuple[int, int], columns: tuple[int, int]) -> Int32Array:
    """Read some rows and columns of the matrix at `place`.

    Parameters
    ----------
    place
        `ContextMatrix.place`.
    rows, columns
        First, and one past the last.

    Returns
    -------
    contexts
        Ids, or NO_CONTEXT, shape (rows, columns) int32.

    Raises
    ------
    StoreError
        If a part of the matrix is missing.
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
    """Open the contexts. The array is cached, as the files never change."""
    return open_array(place.open_group(), "contexts")


@lru_cache(maxsize=2)
def _panel(place: Store, rows: tuple[int, int], number: int) -> Int32Array:
    """Read the columns of a row of chunks. They are cached, as the next columns are in the same chunks."""
    width = _open(place).chunks[1]
    return _read(place, rows, number * width, (number + 1) * width)


def _read(place: Store, rows: tuple[int, int], start: int, stop: int) -> Int32Array:
    return _open(place)[slice(*rows), start:stop]
