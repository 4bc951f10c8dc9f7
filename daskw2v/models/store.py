"""What lies in a version of a model.

A version is a Zarr group of float32 tables (`input`, and what else the objective has), the vocabulary, and, where
there are such, the network that makes words' vectors of their characters, `subwords`, and stable ids of the words,
`ids`. It counts once its manifest is there, which `finish` writes last. A table is written by blocks of rows, or, where
its rows are spread over partitions, by partitions; it is read in order of ids in both cases.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import numpy as np
import zarr
from zarr.codecs import Crc32cCodec

from daskw2v.corpus.sources import Source
from daskw2v.errors import DamageError, StoreError, TrainingError
from daskw2v.intact import METADATA, StoredArray
from daskw2v.limits import typed
from daskw2v.models.rows import Floats, StoredRows
from daskw2v.objectives.subwords.network import Subwords
from daskw2v.release import VERSION
from daskw2v.storage import Store, open_array, write_rows
from daskw2v.vocabulary.count import StoredVocabulary
from daskw2v.vocabulary.ids import StableIds
from daskw2v.vocabulary.partition import Partitions
from daskw2v.vocabulary.vocabulary import Vocabulary
from daskw2v.wording import counted

_TABLES, _SUBWORDS, _SOURCES, _IDS = "tables", "subwords", "sources", "ids"
_SOURCES_FILE = f"{_SOURCES}.json"
_WORDS = ("words", "offsets", "counts")  # arrays of the vocabulary


def create_model(
    store: Store,
    tables: Mapping[str, tuple[int, int]],
    row_block: int,
    n_partitions: int = 1,
    *,
    subwords: bool = False,
) -> None:
    """Declare what a version holds, so that what is lost later is missed; what lay at its URL before is replaced.

    Parameters
    ----------
    store
        The version's place, `models/<version>`.
    tables
        Rows and columns of each table.
    row_block
        Rows of a chunk: the least that one task writes. Chunks of partitions are as much smaller, so that those side
        by side hold as many.
    n_partitions
        Partitions that rows are spread over, as `Partitions` says; tables are written by `write_partition` then.
    subwords
        Whether there is to be a network, from `write_subwords`.

    Raises
    ------
    ParameterError
        If a table has fewer rows than there are partitions.
    """
    layouts = {name: _layout(*shape, row_block, n_partitions) for name, shape in tables.items()}
    group = store.create_group({_TABLES: list(tables), _SUBWORDS: subwords})
    for name, layout in layouts.items():
        # NaN stands for "never written", which zeros could not tell. Weights hardly compress: they lie raw.
        group.create_array(name, **layout, dtype=np.float32, fill_value=np.nan, compressors=[Crc32cCodec()])


def open_table(store: Store, table: str) -> StoredRows:
    """Open a table, to read what is asked for of it.

    Raises
    ------
    StoreError
        If the version or its table is missing.
    """
    return StoredRows(_table(store, store.open_group(), table))


def table_names(store: Store) -> list[str]:
    """Return the names of a version's tables, finished or not; raises as `open_table` does."""
    return _tables(store, store.open_group())


def read_table(store: Store, table: str, start: int = 0, stop: int | None = None) -> Floats:
    """Read rows start:stop of a table, shape (rows, D) float32; all of it by default; raises as `open_table` does."""
    return open_table(store, table)[start:stop]


def write_table_rows(store: Store, table: str, start: int, rows: Floats) -> None:
    """Write rows of a table from `start` on, whole chunks only; many tasks may do so at once.

    Raises
    ------
    StoreError
        If there is no such table, it has partitions, or the rows do not fit its shape or its chunks.
    """
    array = _table(store, store.open_group(writable=True), table)
    if array.ndim != 2:
        raise StoreError(
            f"Table {table} of {store.url} lies in {array.shape[1]} partitions.", "Write it by write_partition."
        )
    if rows.shape[1:] != array.shape[1:] or start + len(rows) > array.shape[0]:
        raise StoreError(
            f"Rows of shape {rows.shape} from row {start} do not fit table {table} of shape {array.shape}.",
            "Write rows of the table's width that end within it.",
        )
    write_rows(array, start, rows)


def read_partition(store: Store, table: str, partition: int) -> Floats:
    """Read a partition's rows, shape (size, D) float32.

    Raises
    ------
    StoreError
        If there is no such table or partition.
    """
    rows = open_table(store, table)
    _check_partition(store, table, rows, partition)
    return rows.read_partition(partition)


def write_partition(store: Store, table: str, partition: int, rows: Floats) -> None:
    """Write all rows of a partition, shape (size, D); the owners of all partitions may do so at once.

    Raises
    ------
    StoreError
        If there is no such table or partition, or the rows are not as many and as wide as its own.
    """
    stored = StoredRows(_table(store, store.open_group(writable=True), table))
    _check_partition(store, table, stored, partition)
    shape = (stored.partitions.size(partition), stored.shape[1])
    if rows.shape != shape:
        raise StoreError(
            f"Rows of shape {rows.shape} do not fit partition {partition} of table {table}, of shape {shape}.",
            "Write all rows of the partition, and no others.",
        )
    stored.write_partition(partition, rows)


def write_vocabulary(store: Store, vocabulary: Vocabulary | StoredVocabulary) -> None:
    """Write the words that the rows of the `input` table stand for."""
    vocabulary.save(store.open_group(writable=True).create_group("vocabulary", overwrite=True))


def read_vocabulary(store: Store) -> Vocabulary:
    """Read a version's vocabulary.

    Raises
    ------
    StoreError
        If the version or its vocabulary is missing.
    VocabularyError
        If its arrays contradict each other.
    """
    return Vocabulary.load((store / "vocabulary").open_group())


def write_subwords(store: Store, subwords: Subwords) -> None:
    """Write the network that makes words' vectors of their characters."""
    subwords.save(store.open_group(writable=True).create_group(_SUBWORDS, overwrite=True))


def read_subwords(store: Store) -> Subwords | None:
    """Read a version's network, or return None where it has none.

    Raises
    ------
    StoreError
        If the version is missing, or its network is damaged.
    """
    group = _part(store, _SUBWORDS)
    return None if group is None else Subwords.load(group)


def write_ids(store: Store, ids: StableIds) -> None:
    """Write the stable ids of a version's words, after its vocabulary and before it is finished.

    Raises
    ------
    StoreError
        If they are not as many as the words.
    """
    _check_ids(store, ids, "Write the ids of its own vocabulary.")
    group = store.open_group(writable=True)
    group.attrs[_IDS] = True  # first, so that ids that are lost are missed
    ids.save(group.create_group(_IDS, overwrite=True))


def read_ids(store: Store) -> StableIds | None:
    """Read the stable ids of a version's words, or return None where it has none.

    Raises
    ------
    StoreError
        If the version is missing, or its ids are damaged or not as many as its words.
    VocabularyError
        If their arrays contradict each other.
    """
    group = _part(store, _IDS)
    if group is None:
        return None
    ids = StableIds.load(group)
    _check_ids(store, ids, "It is damaged: take it from a copy.")
    return ids


def has_ids(store: Store) -> bool:
    """Tell whether a version's words have stable ids."""
    return bool(store.open_group().attrs.get(_IDS))


def ids_after(earlier: Store | None, new: Vocabulary) -> StableIds:
    """Return the stable ids of the version that comes after an earlier one, or of a first version.

    Parameters
    ----------
    earlier
        `Versions.newest_with_ids`, whichever is served: versions before it do not know all ids that were given. Where
        there is none, the version that was used until now: its rows become ids.
    new
        The vocabulary of the version to come.

    Raises
    ------
    StoreError, VocabularyError
        As `read_vocabulary` and `read_ids`.
    """
    if earlier is None:
        return StableIds.first(new)
    known, ids = read_vocabulary(earlier), read_ids(earlier)
    return (StableIds.first(known) if ids is None else ids).grow(known, new)


def write_sources(store: Store, sources: Iterable[Source]) -> None:
    """Write which files the text of a version was read from."""
    store.write_manifest({_SOURCES: [asdict(source) for source in sources]}, _SOURCES_FILE)


def read_sources(store: Store) -> list[Source] | None:
    """Read which files the text of a version was read from; None of one that does not tell.

    Raises
    ------
    StoreError
        If that is damaged.
    """
    values = store.read_manifest(_SOURCES_FILE)
    if values is None:
        return None
    place = f"{store.url}/{_SOURCES_FILE}"
    match values:
        case {"sources": [*sources]}:
            return [typed(Source, source, place) for source in sources]
    raise DamageError.of(place, "does not tell a version's files")


def finish(store: Store, manifest: Mapping[str, Any]) -> None:
    """Check a version and write its manifest: from then on it is a model.

    Parameters
    ----------
    store
        The version's place; its tables and vocabulary are written, and its network and ids where it has such.
    manifest
        What is told of the model: params, corpus, metrics. The tables' shapes, the package's version and the
        time (UTC) are added.

    Raises
    ------
    TrainingError
        If a table holds NaN or infinity; it is no model then.
    DamageError
        If a table was not written to its end, or something is damaged or lost.
    StoreError
        If vocabulary, `input` table and ids differ in length.
    VocabularyError
        If an id belongs to two words or to none.
    """
    group = store.open_group()
    words = _count_words(store)
    tables = {name: StoredRows(_table(store, group, name)) for name in _tables(store, group)}
    if words != (rows := len(tables["input"])):
        raise StoreError(
            f"{store.url} has {counted(words, 'word')} and {counted(rows, 'input row')}.",
            "Write the vocabulary it was trained on.",
        )
    for name, table in tables.items():
        _check_finite(store, name, table)
    network, _ = read_subwords(store), read_ids(store)  # whoever opens the version reads them
    store.write_manifest(
        {
            **manifest,
            _TABLES: {name: list(table.shape) for name, table in tables.items()},
            _SUBWORDS: network is not None,
            "daskw2v": VERSION,
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
        }
    )


def _layout(rows: int, columns: int, row_block: int, n_partitions: int) -> dict[str, Any]:
    """Return a table's shape, chunks and attributes, as `StoredRows` reads them."""
    width = max(1, columns)
    if n_partitions == 1:
        return {"shape": (rows, columns), "chunks": (max(1, min(row_block, rows)), width)}
    n = Partitions(rows, n_partitions).n
    steps = -(-rows // n)
    chunks = (max(1, min(row_block // n, steps)), 1, width)  # of one partition each: one writer each
    return {"shape": (steps, n, columns), "chunks": chunks, "attributes": {"n_words": rows}}


def _table(store: Store, group: zarr.Group, name: str) -> StoredArray:
    if name not in group:
        raise DamageError(
            f"{store.url} has no table {name!r}.",
            f"What lies there: {', '.join(store.children()) or 'nothing'}.",  # not opened: it may be damaged too
            url=f"{store.url}/{name}",
        )
    array = open_array(group, name)
    if array.dtype != np.float32 or not _fits(array):
        raise StoreError(
            f"Table {name!r} of {store.url} is of type {array.dtype} and shape {array.shape}, which no model has.",
            "It is damaged, or not of daskw2v: take it from a copy, or delete it and train again.",
        )
    return array


def _part(store: Store, name: str) -> zarr.Group | None:
    """Return a group that some versions have, or None for one that was to have none."""
    model = store.open_group()
    group = model.get(name)
    if isinstance(group, zarr.Group):
        return group
    if model.attrs.get(name):
        raise DamageError.of(f"{store.url}/{name}", "is missing")
    return None


def _count_words(store: Store) -> int:
    """Return how many words a version has; they are not read, for they may be large."""
    vocabulary = (store / "vocabulary").open_group()
    *_, counts = (open_array(vocabulary, name) for name in _WORDS)
    return len(counts)


def _check_ids(store: Store, ids: StableIds, remedy: str) -> None:
    if len(ids) != (words := _count_words(store)):
        raise StoreError(f"{store.url} has {counted(words, 'word')} and {counted(len(ids), 'stable id')}.", remedy)


def _tables(store: Store, group: zarr.Group) -> list[str]:
    """Return the names of the tables that were declared, whether they are there or not."""
    names: Any = group.attrs.get(_TABLES)
    if not isinstance(names, list) or "input" not in names:
        raise DamageError.of(f"{store.url}/{METADATA}", f"names the tables {names!r}, and not those of a model")
    return names


def _fits(array: StoredArray) -> bool:
    """Tell whether a table's shape is one that `_layout` makes."""
    if array.ndim != 3:
        return array.ndim == 2
    n_words = array.attrs.get("n_words")
    return isinstance(n_words, int) and array.shape[0] == -(-n_words // array.shape[1])


def _check_partition(store: Store, name: str, table: StoredRows, partition: int) -> None:
    if not 0 <= partition < table.partitions.n:
        raise StoreError(
            f"Table {name} of {store.url} has no partition {partition}.",
            f"Its partitions are 0 to {table.partitions.n - 1}.",
        )


def _check_finite(store: Store, name: str, table: StoredRows) -> None:
    for start in range(0, len(table), table.chunk_rows):
        rows = table[start : start + table.chunk_rows]
        if not np.isfinite(rows).all():
            raise TrainingError(
                f"Rows {start}:{start + len(rows)} of table {name} of {store.url} are not finite: training diverged.",
                "Train with a lower alpha.",
            )
