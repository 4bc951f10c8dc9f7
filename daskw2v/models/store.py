"""Reads and writes the contents of a model's version.

A version is a Zarr group with float32 tables (`input`, and others of the objective), the vocabulary, and optionally the
subword network, `subwords`, what the rows of the table `features` stand for, `feature_keys`, and the stable ids of
words, `ids`. It is valid once its manifest exists, which `finish`
writes last. A table is written in blocks of rows or, if its rows are in partitions, by partition; in both cases it is
read in order of ids.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Protocol

import numpy as np
import zarr
from zarr.codecs import Crc32cCodec

from daskw2v.errors import DamageError, StoreError, TrainingError, counted
from daskw2v.features.choice import FEATURES
from daskw2v.features.keys import FeatureKeys
from daskw2v.models.attempts import ATTEMPT, attempt_of, create_part, finish_tables
from daskw2v.models.rows import StoredRows
from daskw2v.objectives.subwords.network import Subwords
from daskw2v.release import VERSION
from daskw2v.store.arrays import open_array, open_subgroup, write_rows
from daskw2v.store.checksums import METADATA, StoredArray
from daskw2v.store.limits import check_name
from daskw2v.store.places import Written
from daskw2v.store.stage import new_attempt
from daskw2v.store.storage import Store
from daskw2v.types import Float32Array
from daskw2v.vocabulary.ids import StableIds
from daskw2v.vocabulary.partition import Partitions
from daskw2v.vocabulary.vocabulary import Vocabulary

_TABLES, _SUBWORDS, _IDS, _FEATURES = "tables", "subwords", "ids", "feature_keys"
_WORDS = ("words", "offsets", "counts")  # arrays of the vocabulary


class SavedWords(Protocol):
    """A vocabulary, in memory or in a work directory."""

    def save(self, group: zarr.Group, /) -> None:
        """Write its three arrays into a Zarr group, as `Vocabulary.save` does."""


def create_model(
    store: Store,
    tables: Mapping[str, tuple[int, int]],
    row_block: int,
    n_partitions: int = 1,
    *,
    subwords: bool = False,
) -> None:
    """Create a version and declare its contents, so that losses are detected later. An existing version is replaced.

    Parameters
    ----------
    store
        Folder of the version, `models/<version>`.
    tables
        Rows and columns of each table.
    row_block
        Rows of a chunk, the least that one task writes. With partitions, corresponding chunks of all partitions
        together have this many rows.
    n_partitions
        Number of partitions (`Partitions`); if above 1, tables are written by `write_partition`.
    subwords
        Whether `write_subwords` will write a network.

    Raises
    ------
    ParameterError
        If a table has fewer rows than there are partitions.
    """
    layouts = {name: _layout(*shape, row_block, n_partitions) for name, shape in tables.items()}
    group = store.create_group({_TABLES: list(tables), _SUBWORDS: subwords}, new_attempt())
    for name, layout in layouts.items():
        # NaN marks rows that were never written. Weights are not compressed, as that saves little.
        group.create_array(name, **layout, dtype=np.float32, fill_value=np.nan, compressors=[Crc32cCodec()])


def open_table(store: Store, table: str) -> StoredRows:
    """Open a table, whose rows are read on demand.

    Raises
    ------
    StoreError
        If the version or its table is missing.
    """
    return StoredRows(_table(store, store.open_group(), table))


def table_names(store: Store) -> list[str]:
    """Return the names of a version's tables, finished or not; raises as `open_table` does."""
    return _tables(store, store.open_group())


def read_table(store: Store, table: str, start: int = 0, stop: int | None = None) -> Float32Array:
    """Read rows start:stop of a table, shape (rows, D) float32; all of it by default; raises as `open_table` does."""
    return open_table(store, table)[start:stop]


def write_table_rows(store: Store, table: str, start: int, rows: Float32Array) -> Written:
    """Write rows of a table from `start` on, whole chunks only; return their checksums, for `finish_tables`.

    Tasks may write different chunks concurrently.

    Raises
    ------
    StoreError
        If there is no such table, it has partitions, or the rows do not fit its shape or its chunks.
    """
    array = _table(store, store.open_group(writable=True), table)
    if array.ndim != 2:
        raise StoreError(
            f"Table {table} of {store.url} has {array.shape[1]} partitions.", "Write it with write_partition."
        )
    if rows.shape[1:] != array.shape[1:] or start + len(rows) > array.shape[0]:
        raise StoreError(
            f"Rows of shape {rows.shape} from row {start} do not fit table {table} of shape {array.shape}.",
            "Write rows of the table's width, within its bounds.",
        )
    write_rows(array, start, rows)
    return array.written()


def read_partition(store: Store, table: str, partition: int) -> Float32Array:
    """Read a partition's rows, shape (size, D) float32.

    Raises
    ------
    StoreError
        If there is no such table or partition.
    """
    rows = open_table(store, table)
    _check_partition(store, table, rows, partition)
    return rows.read_partition(partition)


def write_partition(store: Store, table: str, partition: int, rows: Float32Array) -> Written:
    """Write all rows of a partition, shape (size, D); return their checksums, for `finish_tables`.

    Tasks may write different partitions concurrently.

    Raises
    ------
    StoreError
        If there is no such table or partition, or the rows have another shape.
    """
    array = _table(store, store.open_group(writable=True), table)
    stored = StoredRows(array)
    _check_partition(store, table, stored, partition)
    shape = (stored.partitions.size(partition), stored.shape[1])
    if rows.shape != shape:
        raise StoreError(
            f"Rows of shape {rows.shape} do not fit partition {partition} of table {table}, of shape {shape}.",
            "Write exactly the rows of the partition.",
        )
    stored.write_partition(partition, rows)
    return array.written()


def write_vocabulary(store: Store, vocabulary: SavedWords) -> None:
    """Write the words of the rows of the `input` table."""
    vocabulary.save(create_part(store, "vocabulary"))


def read_vocabulary(store: Store) -> Vocabulary:
    """Read a version's vocabulary.

    Raises
    ------
    StoreError
        If the version or its vocabulary is missing.
    VocabularyError
        If its arrays contradict each other.
    """
    return Vocabulary.load(open_subgroup(store.open_group(), "vocabulary"))


def write_subwords(store: Store, subwords: Subwords) -> None:
    """Write the subword network, which computes vectors of words from their characters."""
    subwords.save(create_part(store, _SUBWORDS))


def read_subwords(store: Store) -> Subwords | None:
    """Read a version's subword network; return None if it has none.

    Raises
    ------
    StoreError
        If the version is missing, or its network is damaged.
    """
    group = _part(store, _SUBWORDS)
    return None if group is None else Subwords.load(group)


def write_features(store: Store, keys: FeatureKeys) -> None:
    """Write what the rows of the table `features` stand for."""
    group = store.open_group(writable=True)
    group.attrs[_FEATURES] = True  # first, so that a loss is detected
    keys.save(create_part(store, _FEATURES))


def read_features(store: Store) -> FeatureKeys | None:
    """Read what the rows of a version's table `features` stand for; return None if it has none.

    Raises
    ------
    StoreError
        If the version is missing, or they are damaged or do not fit the table.
    """
    group = _part(store, _FEATURES)
    if group is None:
        return None
    keys, rows = FeatureKeys.load(group), len(open_table(store, FEATURES))
    if len(keys) != rows:
        raise DamageError.of(f"{store.url}/{_FEATURES}", f"has {len(keys)} features for {rows} rows")
    return keys


def write_ids(store: Store, ids: StableIds) -> None:
    """Write the stable ids of a version's words, after its vocabulary and before `finish`.

    Raises
    ------
    StoreError
        If there are not as many ids as words.
    """
    _check_ids(store, ids, "Write the ids of its own vocabulary.")
    group = store.open_group(writable=True)
    group.attrs[_IDS] = True  # first, so that a loss of the ids is detected
    ids.save(create_part(store, _IDS))


def read_ids(store: Store) -> StableIds | None:
    """Read the stable ids of a version's words; return None if it has none.

    Raises
    ------
    StoreError
        If the version is missing, its ids are damaged, or there are not as many as words.
    VocabularyError
        If their arrays contradict each other.
    """
    group = _part(store, _IDS)
    if group is None:
        return None
    ids = StableIds.load(group)
    _check_ids(store, ids, "It is damaged: restore it from a copy.")
    return ids


def has_ids(store: Store) -> bool:
    """Return whether a version's words have stable ids."""
    return bool(store.open_group().attrs.get(_IDS))


def ids_after(earlier: Store | None, new: Vocabulary) -> StableIds:
    """Return the stable ids of a new version.

    Parameters
    ----------
    earlier
        `Versions.newest_with_ids`, which knows all ids that were assigned, whether it is served or not. If there is
        none, the version used so far, whose rows become ids; None for a first version.
    new
        Vocabulary of the new version.

    Raises
    ------
    StoreError, VocabularyError
        As `read_vocabulary` and `read_ids`.
    """
    if earlier is None:
        return StableIds.first(new)
    known, ids = read_vocabulary(earlier), read_ids(earlier)
    return (StableIds.first(known) if ids is None else ids).grow(known, new)


def open_tables(store: Store) -> dict[str, StoredRows]:
    """Open all tables of a version, by name.

    Raises
    ------
    DamageError
        If a table or the vocabulary is damaged or missing, or they differ in length.
    """
    group = store.open_group()
    words = _count_words(store)
    tables = {name: StoredRows(_table(store, group, name)) for name in _tables(store, group)}
    if words != (rows := len(tables["input"])):
        raise DamageError(
            f"{store.url} has {counted(words, 'word')} and {counted(rows, 'input row')}.",
            "Write the vocabulary it was trained on.",
            url=store.url,
        )
    return tables


def finish(store: Store, manifest: Mapping[str, Any]) -> None:
    """Check a version and write its manifest, which makes it valid.

    Parameters
    ----------
    store
        Folder of the version. Tables, vocabulary and, if it has them, network and ids are written.
    manifest
        Metadata of the model: params, corpus, metrics. Shapes of tables, version of the package and time (UTC) are
        added.

    Raises
    ------
    TrainingError
        If a table contains NaN or infinity.
    DamageError
        If a table is incomplete, or a part is damaged or missing.
    StoreError
        If vocabulary, `input` table and ids differ in length.
    VocabularyError
        If an id belongs to two words or to none.
    """
    tables = open_tables(store)
    for name, table in tables.items():
        _check_finite(store, name, table)
    finish_tables(store, [table.array.written() for table in tables.values() if not table.array.is_finished])
    network, _, _ = read_subwords(store), read_ids(store), read_features(store)  # checks them, as opening it does
    store.finish_manifest(
        {
            **manifest,
            _TABLES: {name: list(table.shape) for name, table in tables.items()},
            _SUBWORDS: network is not None,
            "daskw2v": VERSION,
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            ATTEMPT: attempt_of(store),
        },
        portable=True,
    )


def _layout(rows: int, columns: int, row_block: int, n_partitions: int) -> dict[str, Any]:
    """Return a table's shape, chunks and attributes, as `StoredRows` reads them."""
    width = max(1, columns)
    if n_partitions == 1:
        return {"shape": (rows, columns), "chunks": (max(1, min(row_block, rows)), width)}
    n = Partitions(rows, n_partitions).n
    steps = -(-rows // n)
    chunks = (max(1, min(row_block // n, steps)), 1, width)  # of one partition each, so that each has one writer
    return {"shape": (steps, n, columns), "chunks": chunks, "attributes": {"n_words": rows}}


def _table(store: Store, group: zarr.Group, name: str) -> StoredArray:
    check_name(name)
    if name not in group:
        raise DamageError(
            f"{store.url} has no table {name!r}.",
            f"The folder contains: {', '.join(store.children()) or 'nothing'}.",  # not opened, as it may be damaged
            url=f"{store.url}/{name}",
        )
    array = open_array(group, name)
    if array.dtype != np.float32 or not _fits(array):
        raise DamageError(
            f"Table {name!r} of {store.url} has type {array.dtype} and shape {array.shape}, which no model has.",
            "It is damaged, or not of daskw2v: restore it from a copy, or delete it and train again.",
            url=array.url,
        )
    return array


def _part(store: Store, name: str) -> zarr.Group | None:
    """Return an optional group of a version, or None if none was declared."""
    model = store.open_group()
    group = model.get(name)
    if isinstance(group, zarr.Group):
        return group
    if group is not None or model.attrs.get(name):
        raise DamageError.of(f"{store.url}/{name}", "is missing, or no group")
    return None


def _count_words(store: Store) -> int:
    """Return the number of words of a version, without reading them."""
    vocabulary = open_subgroup(store.open_group(), "vocabulary")
    *_, counts = (open_array(vocabulary, name) for name in _WORDS)
    return len(counts)


def _check_ids(store: Store, ids: StableIds, remedy: str) -> None:
    if len(ids) != (words := _count_words(store)):
        problem = f"{store.url} has {counted(words, 'word')} and {counted(len(ids), 'stable id')}."
        raise DamageError(problem, remedy, url=f"{store.url}/{_IDS}")


def _tables(store: Store, group: zarr.Group) -> list[str]:
    """Return the names of the declared tables, whether they exist or not."""
    names: Any = group.attrs.get(_TABLES)
    if not isinstance(names, list) or "input" not in names or not all(isinstance(name, str) for name in names):
        raise DamageError.of(f"{store.url}/{METADATA}", f"names the tables {names!r}, and not those of a model")
    return names


def _fits(array: StoredArray) -> bool:
    """Return whether a table has a shape that `_layout` makes."""
    if array.ndim != 3:
        return array.ndim == 2
    n_words = array.attrs.get("n_words")
    return type(n_words) is int and array.shape[0] == -(-n_words // array.shape[1])


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
