"""The word-context matrix: the same number of contexts for each word, sampled from all its windows.

W2V-CL trains on it instead of the text (Li et al. 2019, section 3), so that frequent words have no more pairs than rare
ones. Row i has contexts of word i in random order. If the word has n pairs, fewer than columns, the row repeats all of
them in every n columns; if it has none, the row has NO_CONTEXT.

The tasks that build a matrix write below the folder of the build:

    matrix               Zarr group: `contexts` (V, l) int32; `seen` (V,) int64, the number of pairs of each word; and
                         the vocabulary, so that another matrix can extend this one
    text/<i>/<attempt>   pairs of a piece of text: `rows` and `entries` of a `reservoir.PairSample`, by band
    base/<i>/<attempt>   rows of the base with new ids, by band: `rows`, with their numbers of pairs, and `contexts`
    base/ids-<attempt>   the new ids of the base's words, in one part

A band is a range of rows: one Zarr shard, written by one task. Files other than `matrix` are part files
(`store.partfile`) with a part for each band; they are deleted when the matrix is finished.

A matrix may extend an earlier one, its base. The contexts of a row are in random order. So a row of all text is a
random merge of the old and the new row: the next context is an old one with the probability of old pairs among the
remaining pairs. This needs only the number of pairs of each row, not the old pairs that were not sampled.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from distributed import Client

from daskw2v.cluster.tasks import run_tasks
from daskw2v.config.identity import identity_fields
from daskw2v.config.params import Params
from daskw2v.config.settings import get_default
from daskw2v.corpus.files import Source
from daskw2v.errors import InputError, ParameterError, StoreError, VocabularyError, counted
from daskw2v.kernels.rng import Purpose, stream
from daskw2v.progress import Listener, Progress, silent
from daskw2v.sampling.reader import read_text, read_thresholds
from daskw2v.sampling.reservoir import NO_CONTEXT, PairSample, Reservoir, merge_rows, repeat_contexts, sample_pairs
from daskw2v.sampling.run import Run
from daskw2v.sampling.segments import cut_range
from daskw2v.sampling.settings import SampledContexts
from daskw2v.shards.layout import Corpus, corpus_identity, digest
from daskw2v.store.arrays import StoredArray, create_array, finish_arrays, open_array, read_array, write_rows
from daskw2v.store.checksums import ChunkChecksums
from daskw2v.store.limits import refused, typed
from daskw2v.store.partfile import read_part, write_parts
from daskw2v.store.stage import Layout, OpenStage, Stage, groups_exist, new_attempt
from daskw2v.store.storage import MANIFEST, Store
from daskw2v.types import Int32Array, Int64Array
from daskw2v.vocabulary.vocabulary import Vocabulary

PAIRS = 1 << 22  # pairs that one task samples, at most: 32 MB of entries
LAYOUT = Layout(
    "matrices/<name>/<build>",
    remedy="Restore {url} from a copy. Or delete it: then the same command samples it again from the same text. If it "
    "is the base_matrix, build_matrix does so, with the text and the Params that it had. Check the disk.",
)
_MATRIX = "matrix"
BAND = 1 << 23  # entries of a band, at most: 64 MB
BANDS = 16  # bands of a small matrix, so that there is work for several workers
ROWS, COLUMNS = 2048, 128  # of a chunk, 1 MB; training reads few columns of many rows
UNWRITTEN = NO_CONTEXT - 1
_VARYING_FIELDS = ("seed", "base_matrix")  # fields in which a matrix and its base may differ


@dataclass(frozen=True)
class ContextMatrix:
    """A finished word-context matrix.

    Parameters
    ----------
    folder
        Folder of the matrix.
    build
        Name of the folder of the attempt whose result is valid.
    words, context_size
        Number of rows and of columns.
    text_words, pairs
        Number of known tokens in the text before subsampling, and of pairs, including the base.
    seconds
        Time that it took to build the matrix.
    """

    folder: Store
    build: str
    words: int
    context_size: int
    text_words: int
    pairs: int
    seconds: float

    @property
    def group(self) -> Store:
        """Folder of the Zarr group with the arrays of the matrix."""
        return self.folder / self.build / _MATRIX

    @property
    def name(self) -> str:
        """Identity of the matrix, for `SampledContexts.base_matrix` of a later one."""
        return self.folder.name


class Build(NamedTuple):
    """Arguments shared by all tasks of a build.

    Parameters
    ----------
    run, folder
        Text, words and Params; and the folder of the build.
    generation
        Number of matrices that this one extends, one after the other. The random numbers depend on it.
    """

    run: Run
    folder: Store
    generation: int

    @property
    def matrix(self) -> Store:
        """Folder of the Zarr group of the matrix."""
        return self.folder / _MATRIX

    @property
    def settings(self) -> SampledContexts:
        """The settings of the matrix."""
        return SampledContexts.of(self.run.params)

    @property
    def band(self) -> int:
        """Number of rows in a band."""
        return count_band_rows(self.run.vocabulary.size, self.settings.context_size)

    @property
    def n_bands(self) -> int:
        """Number of bands."""
        return -(-self.run.vocabulary.size // self.band)

    def key(self, purpose: Purpose) -> np.uint64:
        """Return the key of the random numbers of this generation for a purpose."""
        return stream(self.run.params.seed, purpose, self.generation)

    def edges(self, rows: npt.NDArray[Any]) -> Int64Array:
        """Return for ascending rows the index at which each band begins, and their number; shape (n_bands + 1,)."""
        return np.searchsorted(rows, np.arange(self.n_bands + 1) * self.band).astype(np.int64)

    def read(self, piece: str, name: str, band: int, dtype: npt.DTypeLike, columns: int) -> npt.NDArray[Any]:
        """Return a band of the part file `name`, in order of rows, shape (items, columns).

        `piece` is the path of the file's folder below the folder of the build.
        """
        return read_part(self.folder / piece, name, self.n_bands, band, dtype, columns)


def build_matrix(client: Client, run: Run, listener: Listener = silent) -> ContextMatrix:
    """Sample the word-context matrix of a run's text on the cluster, or return it if it was built before.

    Windows and subsampling are as in the first epoch. With `base_matrix`, only text that is new since the base is
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
    inputs = [corpus.identity, run.vocabulary.identity, sampling_rules(params), params.seed, base]
    folder = run.work / LAYOUT.folder / digest(inputs)
    stage = Stage(run.work, folder, lambda: partial(run_tasks, client), listener, "matrix")
    return stage.make(partial(find_matrix, folder), partial(_build, corpus, run))


def _build(corpus: Corpus, run: Run, stage: OpenStage) -> ContextMatrix:
    """Build the matrix of a run in the folder of a stage; raises as `build_matrix` does."""
    started, params, vocabulary = time.monotonic(), run.params, run.vocabulary
    earlier = SampledContexts.of(params).base_matrix
    start, text, base = 0, describe_text(corpus.identity, corpus.sources, corpus.n_tokens, params), None
    if earlier is not None:
        base = read_base(run.work / LAYOUT.folder / earlier)
        check_rules(base, params)
        start, text = find_new_text(base["text"], corpus, params)
    build = Build(run, stage.attempt(), 0 if base is None else base["generation"] + 1)
    create_matrix(build)
    pieces = list(cut_range(start, corpus.n_tokens, max(1, PAIRS // (2 * params.window))))
    text_words, pairs = _run_tasks(stage, build, base, pieces)
    manifest = {
        "build": build.folder.name,
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
        "seconds": round(time.monotonic() - started, 3),
    }
    stage.finish(manifest, [f"{build.folder.name}/{_MATRIX}"])
    stage.listener(Progress("matrix", 1, 1, "matrix", message=f"word-context matrix {stage.folder.name}"))
    return _parse_matrix(run.work / LAYOUT.folder / stage.folder.name, manifest)  # without the lease, which ends


def _run_tasks(
    stage: OpenStage, build: Build, base: dict[str, Any] | None, pieces: Sequence[tuple[int, int]]
) -> tuple[int, int]:
    """Run all tasks of a build; return the numbers of known tokens and of pairs of all text, with that of the base.

    `base` is the manifest of the base; `pieces` are the ranges (start, stop) of new positions, stop excluded.
    """
    parts = list[tuple[int, int]]()
    if base is not None:
        parts += cut_range(0, base["words"], count_band_rows(base["words"], base["context_size"]))
    total = len(pieces) + len(parts) + build.n_bands + (base is not None)
    stage.expect(total, message=f"{counted(len(pieces), 'piece')} of text")

    def call(step: str, function: Callable[..., Any], jobs: Sequence[tuple[Any, ...]]) -> list[Any]:
        return stage.map(step, function, [(build, number, *job) for number, job in enumerate(jobs)])

    ranges: list[tuple[Any, ...]] = []
    if base is not None:
        rows = build.run.work / LAYOUT.folder / str(build.settings.base_matrix) / base["build"] / _MATRIX
        (ids,) = stage.map("match", match_base, [(build, rows)])
        ranges = [(rows, ids, *part) for part in parts]
    text_results = call("sample", sample_text, pieces)
    texts = [f"text/{i}/{attempt}" for i, (attempt, _) in enumerate(text_results)]
    bases = [f"base/{i}/{attempt}" for i, attempt in enumerate(call("carry", carry_rows, ranges))]
    band_results = call("fill", fill_band, [(texts, bases)] * build.n_bands)
    finish_arrays(build.matrix.open_group(writable=True), [checksums for _, checksums in band_results])
    pairs = sum(n_pairs for n_pairs, _ in band_results)
    return sum(words for _, words in text_results) + (0 if base is None else base["text_words"]), pairs


def find_matrix(folder: Store) -> ContextMatrix | None:
    """Return the finished matrix in a folder; None if there is none."""
    manifest = _read_manifest(folder)
    return None if manifest is None else _parse_matrix(folder, manifest)


def _parse_matrix(folder: Store, manifest: dict[str, Any]) -> ContextMatrix:
    """Return the matrix that a manifest describes; raises StoreError if a field is missing or of another type."""
    fields = ContextMatrix.__dataclass_fields__.keys() & manifest.keys()
    return typed(ContextMatrix, {name: manifest[name] for name in fields}, f"{folder.url}/{MANIFEST}", folder=folder)


def _read_manifest(folder: Store) -> dict[str, Any] | None:
    """Return the manifest of the finished matrix in a folder; None if it or the matrix is missing."""
    manifest = folder.read_manifest()
    exists = manifest is not None and groups_exist(folder, [f"{_parse_matrix(folder, manifest).build}/{_MATRIX}"])
    return manifest if exists else None


def read_base(folder: Store) -> dict[str, Any]:
    """Return the manifest of a matrix that is to be extended.

    Raises
    ------
    StoreError
        If the folder has no finished matrix, or its manifest lacks a field that a base must have.
    """
    match manifest := _read_manifest(folder):
        case None:
            raise StoreError(
                f"{folder.url} holds no finished word-context matrix.",
                "Build it first, in the same work directory; base_matrix is its name.",
            )
        case {
            "generation": int(generation),
            "text": {"identity": str(), "reading": str(), "tokens": int(tokens), "sources": [*sources]},
        } if 0 <= generation < 1 << 31 and 0 <= tokens < 1 << 63:
            for source in sources:
                typed(Source, source, f"{folder.url}/{MANIFEST}")
            return manifest
    raise refused(f"{folder.url}/{MANIFEST}", "does not describe the text of a matrix")


def sampling_rules(params: Params) -> dict[str, Any]:
    """Return the fields of Params that must be equal in a matrix and its base, by name, as JSON types."""
    rules = identity_fields(params, "matrix", without=_VARYING_FIELDS)
    return {"context_size": rules["context_size"], **rules}  # in the order of the first release


def check_rules(base: Mapping[str, Any], params: Params) -> None:
    """Refuse a base whose manifest has other sampling rules than the Params.

    Raises
    ------
    ParameterError
        If one of the `sampling_rules` differs.
    """
    name = SampledContexts.of(params).base_matrix
    for field, value in params.items():
        if field.metadata["stage"] == "matrix" and field.name not in _VARYING_FIELDS:
            base_value = base.get(field.name, get_default(field))
            if value != base_value:
                raise ParameterError(
                    f"{field.name}={value!r}, but base_matrix={name!r} was made with {base_value!r}.",
                    f"Give {field.name}={base_value!r}, or leave base_matrix out and read all text again.",
                )


def describe_text(identity: str, sources: Sequence[Source], tokens: int, params: Params) -> dict[str, Any]:
    """Return a description of a matrix's text as JSON types, for its manifest and `find_new_text`.

    Parameters
    ----------
    identity
        `corpus_identity` of the sources.
    sources, tokens
        The files in order, and their number of tokens.
    params
        The Params by which the files are read.
    """
    reading = corpus_identity((), params)  # of the rules alone
    return {"identity": identity, "reading": reading, "tokens": tokens, "sources": [asdict(s) for s in sources]}


def find_new_text(seen: Mapping[str, Any], corpus: Corpus, params: Params) -> tuple[int, dict[str, Any]]:
    """Find the text of a corpus that is new since a base.

    It is the rest of a corpus that begins with the base's text, or all of a corpus that shares no file with it.

    Parameters
    ----------
    seen
        The base's text, from `describe_text`.
    corpus, params
        The corpus, and the Params by which it is read.

    Returns
    -------
    start, text
        The first new position; and the text of base and corpus together, as in `describe_text`.

    Raises
    ------
    InputError
        If base and corpus share files, but the corpus does not begin with the base's text.
    ParameterError
        If the new files are read by other rules.
    """
    sources, n_files = [Source(**source) for source in seen["sources"]], len(seen["sources"])
    if corpus_identity(corpus.sources[:n_files], params) == seen["identity"]:
        return seen["tokens"], describe_text(corpus.identity, corpus.sources, corpus.n_tokens, params)
    base, urls = SampledContexts.of(params).base_matrix, {source.url for source in sources}
    shared = [source.url for source in corpus.sources if source.url in urls]
    if shared:
        raise InputError(
            f"{shared[0]} is in the text of base_matrix={base!r}, but the corpus does not begin with all of "
            f"that text ({counted(n_files, 'file')}, read by the same rules and unchanged).",
            "Give the base's files first, in their order, followed by new files; or give new files only; or leave "
            "base_matrix out.",
        )
    if corpus_identity((), params) != seen["reading"]:
        raise ParameterError(
            f"The text of base_matrix={base!r} was read by another tokenizer, format, column or errors.",
            "Read the new text with the same Params, or leave base_matrix out and read all text again.",
        )
    all_sources = [*sources, *corpus.sources]
    return 0, describe_text(corpus_identity(all_sources, params), all_sources, seen["tokens"] + corpus.n_tokens, params)


def match_words(old: Vocabulary, new: Vocabulary) -> Int32Array:
    """Return the new id of each old word, shape (old words,) int32.

    Raises
    ------
    VocabularyError
        If the new vocabulary lacks an old word.
    """
    ids = [new.find(word) for word in old.words]
    if None in ids:
        raise VocabularyError(
            f"{ids.count(None)} of {counted(len(ids), 'word')} of the base matrix are not in the vocabulary, such as "
            f"{old.word(ids.index(None))!r}.",
            "Give the base's files before the new ones, so that their words count, and keep as many words (min_count, "
            "max_final_vocab, vocabulary); or leave base_matrix out.",
        )
    return np.array(ids, np.int32)


def read_contexts(group: Store, rows: tuple[int, int], columns: tuple[int, int]) -> Int32Array:
    """Return a range of rows and columns of a matrix.

    Parameters
    ----------
    group
        `ContextMatrix.group`.
    rows, columns
        The first index, and one past the last.

    Returns
    -------
    contexts
        Ids, or NO_CONTEXT, shape (rows, columns) int32.

    Raises
    ------
    StoreError
        If a part of the matrix is missing.
    """
    width = _open_contexts(group).chunks[1]
    start, stop = columns
    if stop - start >= width:
        return _open_contexts(group)[slice(*rows), start:stop]
    panels = range(start // width, -(-stop // width))
    parts = [_read_panel(group, rows, i)[:, max(0, start - i * width) : stop - i * width] for i in panels]
    return np.concatenate(parts, axis=1)


@lru_cache(maxsize=8)
def _open_contexts(group: Store) -> StoredArray:
    """Return the array of a matrix's contexts, a row for each word, shape (V, l) int32, opened.

    It is cached, as its files never change.
    """
    return open_array(group.open_group(), "contexts")


@lru_cache(maxsize=2)
def _read_panel(group: Store, rows: tuple[int, int], number: int) -> Int32Array:
    """Return a range of rows of the chunks with index `number` along the columns; cached for the next columns."""
    width = _open_contexts(group).chunks[1]
    return _open_contexts(group)[slice(*rows), number * width : (number + 1) * width]


def count_band_rows(n_words: int, context_size: int) -> int:
    """Return the number of rows in a band: a multiple of a chunk's rows, or fewer than a chunk's."""
    rows = max(1, min(BAND // context_size, max(ROWS, -(-n_words // BANDS))))
    return rows if rows < ROWS else rows // ROWS * ROWS


def create_matrix(build: Build) -> None:
    """Create the Zarr group of a matrix, with its words, and arrays that hold UNWRITTEN."""
    group, vocabulary, band = build.matrix.create_group(), build.run.vocabulary, build.band
    vocabulary.save(group)
    shape, rows = (vocabulary.size, build.settings.context_size), min(band, ROWS)
    create_array(group, "contexts", shape, np.int32, rows, chunk_columns=COLUMNS, shard_rows=band, fill_value=UNWRITTEN)
    create_array(group, "seen", shape[:1], np.int64, band, fill_value=UNWRITTEN)


def sample_text(build: Build, number: int, start: int, stop: int) -> tuple[str, int]:
    """Task: sample the pairs whose centers are at the positions start..stop-1, piece `number` of the text.

    Returns
    -------
    tuple
        Name of the attempt's folder, and the number of known tokens.
    """
    segment, words, windows = read_text(build.run, 0, start, stop)
    vocabulary, size, key = build.run.vocabulary, build.settings.context_size, build.key(Purpose.MATRIX)
    keep = read_thresholds(vocabulary, build.settings.context_sample)
    rows, entries = sample_pairs(segment, *segment.centers(start, stop), windows, key, vocabulary.size, size, keep)
    bounds, attempt = build.edges(rows[:, 0]), new_attempt()
    folder = build.folder / "text" / str(number) / attempt
    write_parts(folder, "rows", bounds, rows)
    write_parts(folder, "entries", np.cumsum([0, *np.minimum(rows[:, 1], size)])[bounds], entries)
    return attempt, words


def match_base(build: Build, base: Store) -> str:
    """Task: write the new ids of the words of a base, whose Zarr group is in `base`; return the attempt's name."""
    old, new = (Vocabulary.load(store.open_group()) for store in (base, build.matrix))
    attempt = new_attempt()
    write_parts(build.folder / "base", f"ids-{attempt}", [0, len(old)], match_words(old, new))
    return attempt


def carry_rows(build: Build, number: int, base: Store, matched: str, start: int, stop: int) -> str:
    """Task: write the rows start..stop-1 of a base, sorted into bands of the new matrix; return the attempt's name.

    `number` is the number of this range of rows, `base` the folder of the base's Zarr group, `matched` the result of
    `match_base`.
    """
    group = base.open_group()
    ids = read_part(build.folder / "base", f"ids-{matched}", 1, 0, np.int32, 1)[:, 0]
    seen, contexts = (read_array(group, name, start, stop) for name in ("seen", "contexts"))
    order = np.argsort(ids[start:stop])
    order = order[seen[order] > 0]  # rows without pairs have no contexts
    rows = np.column_stack([ids[start:stop][order].astype(np.int64), seen[order]])
    bounds, attempt = build.edges(rows[:, 0]), new_attempt()
    folder = build.folder / "base" / str(number) / attempt
    write_parts(folder, "rows", bounds, rows)
    write_parts(folder, "contexts", bounds, ids[contexts[order]])
    return attempt


def fill_band(build: Build, number: int, texts: Sequence[str], bases: Sequence[str]) -> tuple[int, ChunkChecksums]:
    """Task: write the rows of a band of the matrix.

    Parameters
    ----------
    build, number
        The build, and the number of the band.
    texts, bases
        Paths of the results of `sample_text` and of `carry_rows`, below the build's folder.

    Returns
    -------
    tuple
        Number of the band's pairs, and the checksums of the chunks written.
    """
    first, size = number * build.band, build.settings.context_size
    reservoir = Reservoir(first, min(build.band, build.run.vocabulary.size - first), size)
    for piece in texts:
        entries = build.read(piece, "entries", number, np.uint64, 1)
        reservoir.add(PairSample(build.read(piece, "rows", number, np.int32, 2), entries[:, 0]))
    contexts, seen = reservoir.contexts()
    for piece in bases:
        rows = build.read(piece, "rows", number, np.int64, 2)
        base_contexts = build.read(piece, "contexts", number, np.int32, size)
        merge_rows(contexts, seen, first, rows, base_contexts, build.key(Purpose.GROWTH))
    repeat_contexts(contexts, seen, first, build.key(Purpose.REPEAT))
    group = build.matrix.open_group(writable=True)
    stored, counts = open_array(group, "contexts"), open_array(group, "seen")
    write_rows(stored, first, contexts)
    write_rows(counts, first, seen)
    return int(seen.sum()), stored.chunk_checksums() | counts.chunk_checksums()
