"""The tasks that build a word-context matrix.

They write below the folder of the build:

    matrix               Zarr group: `contexts` (V, l) int32; `seen` (V,) int64, the number of pairs of each word; and
                         the vocabulary, so that another matrix can extend this one
    text/<i>/<attempt>   pairs of a piece of text: `rows` and `entries` of a `reservoir.PairSample`, by band
    base/<i>/<attempt>   rows of the base with new ids, by band: `rows`, with their numbers of pairs, and `contexts`;
                         `base/ids` has the new ids of the base's words

A band is a range of rows: one Zarr shard, written by one task. Files other than `matrix` are part files
(`store.partfile`) with a part for each band; they are deleted when the matrix is finished.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from daskw2v.kernels.rng import Purpose, stream
from daskw2v.sampling.growth import match_words, merge_rows
from daskw2v.sampling.reservoir import NO_CONTEXT, PairSample, Reservoir, repeat_contexts, sample_pairs
from daskw2v.sampling.run import Run
from daskw2v.sampling.settings import SampledContexts
from daskw2v.sampling.text import read_text, thresholds_of
from daskw2v.store.arrays import create_array, open_array, read_array, write_rows
from daskw2v.store.checksums import Written
from daskw2v.store.partfile import read_part, write_parts
from daskw2v.store.stage import new_attempt
from daskw2v.store.storage import Store
from daskw2v.types import Int64Array
from daskw2v.vocabulary.vocabulary import Vocabulary

BAND = 1 << 23  # most entries of a band: 64 MB
BANDS = 16  # bands of a small matrix, so that there is work for several workers
ROWS, COLUMNS = 512, 128  # of a chunk, 256 KB; training reads some columns of many rows
UNWRITTEN = NO_CONTEXT - 1


class Build(NamedTuple):
    """Arguments shared by all tasks of a build.

    Parameters
    ----------
    run, place
        Text, words and Params; and the folder of the build.
    generation
        Number of bases before this matrix, each extending the one before. Each generation has its own draws.
    """

    run: Run
    place: Store
    generation: int

    @property
    def band(self) -> int:
        """Number of rows in a band."""
        return band_of(self.run.vocabulary.size, SampledContexts.of(self.run.params).context_size)

    @property
    def n_bands(self) -> int:
        """Number of bands."""
        return -(-self.run.vocabulary.size // self.band)

    def key(self, purpose: Purpose) -> np.uint64:
        """Return a random stream of this generation."""
        return stream(self.run.params.seed, purpose, self.generation)

    def edges(self, rows: npt.NDArray[Any]) -> Int64Array:
        """Return the bounds of the bands among ascending rows, shape (n_bands + 1,)."""
        return np.searchsorted(rows, np.arange(self.n_bands + 1) * self.band).astype(np.int64)

    def read(self, piece: str, name: str, band: int, dtype: npt.DTypeLike, columns: int) -> npt.NDArray[Any]:
        """Read a band of a part file: items of `columns` numbers, in order of rows."""
        return read_part(self.place / piece, name, self.n_bands, band, dtype, columns)


def band_of(n_words: int, context_size: int) -> int:
    """Return the number of rows in a band: a multiple of a chunk's rows, or fewer than a chunk has."""
    rows = max(1, min(BAND // context_size, max(ROWS, -(-n_words // BANDS))))
    return rows if rows < ROWS else rows // ROWS * ROWS


def declare(build: Build) -> None:
    """Create the group of the matrix: its words, and empty arrays."""
    group, vocabulary = (build.place / "matrix").create_group(), build.run.vocabulary
    vocabulary.save(group)
    shape, rows = (vocabulary.size, SampledContexts.of(build.run.params).context_size), min(build.band, ROWS)
    create_array(
        group, "contexts", shape, np.int32, rows, chunk_columns=COLUMNS, shard_rows=build.band, fill_value=UNWRITTEN
    )
    create_array(group, "seen", shape[:1], np.int64, build.band, fill_value=UNWRITTEN)


def sample_text(build: Build, number: int, start: int, stop: int) -> tuple[str, int]:
    """Task: sample the pairs of the positions start..stop-1; return the attempt and the number of known tokens."""
    segment, words, windows = read_text(build.run, 0, start, stop)
    size, key = SampledContexts.of(build.run.params).context_size, build.key(Purpose.MATRIX)
    keep = thresholds_of(build.run.vocabulary, SampledContexts.of(build.run.params).context_sample)
    found = sample_pairs(segment, *segment.centers(start, stop), windows, key, build.run.vocabulary.size, size, keep)
    edges, attempt = build.edges(found.rows[:, 0]), new_attempt()
    place = build.place / "text" / str(number) / attempt
    write_parts(place, "rows", edges, found.rows)
    write_parts(place, "entries", np.cumsum([0, *np.minimum(found.rows[:, 1], size)])[edges], found.entries)
    return attempt, words


def match_base(build: Build, base: Store) -> str:
    """Task: find the new ids of the words of a base matrix; return the attempt."""
    old, new = (Vocabulary.load(store.open_group()) for store in (base, build.place / "matrix"))
    attempt = new_attempt()
    write_parts(build.place / "base", f"ids-{attempt}", [0, len(old)], match_words(old, new))
    return attempt


def carry_rows(build: Build, number: int, base: Store, matched: str, start: int, stop: int) -> str:
    """Task: sort the rows start..stop-1 of a base into bands of the new matrix; return the attempt."""
    group = base.open_group()
    ids = read_part(build.place / "base", f"ids-{matched}", 1, 0, np.int32, 1)[:, 0]
    seen, contexts = (read_array(group, name, start, stop) for name in ("seen", "contexts"))
    order = np.argsort(ids[start:stop])
    order = order[seen[order] > 0]  # others have no contexts
    rows = np.column_stack([ids[start:stop][order].astype(np.int64), seen[order]])
    edges, attempt = build.edges(rows[:, 0]), new_attempt()
    place = build.place / "base" / str(number) / attempt
    write_parts(place, "rows", edges, rows)
    write_parts(place, "contexts", edges, ids[contexts[order]])
    return attempt


def fill_band(build: Build, number: int, texts: Sequence[str], bases: Sequence[str]) -> tuple[int, Written]:
    """Task: write a band from all pieces of text and of the base; return its pairs, and checksums."""
    first, size = number * build.band, SampledContexts.of(build.run.params).context_size
    reservoir = Reservoir(first, min(build.band, build.run.vocabulary.size - first), size)
    for piece in texts:
        entries = build.read(piece, "entries", number, np.uint64, 1)
        reservoir.add(PairSample(build.read(piece, "rows", number, np.int32, 2), entries[:, 0]))
    contexts, seen = reservoir.contexts()
    for piece in bases:
        old = build.read(piece, "contexts", number, np.int32, size)
        merge_rows(
            contexts, seen, first, build.read(piece, "rows", number, np.int64, 2), old, build.key(Purpose.GROWTH)
        )
    repeat_contexts(contexts, seen, first, build.key(Purpose.REPEAT))
    group = (build.place / "matrix").open_group(writable=True)
    stored, counts = open_array(group, "contexts"), open_array(group, "seen")
    write_rows(stored, first, contexts)
    write_rows(counts, first, seen)
    return int(seen.sum()), stored.written() | counts.written()
