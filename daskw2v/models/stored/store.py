"""Reads and writes the contents of a model's version.

A version is a Zarr group with float32 tables (`input`, and others of the objective), the vocabulary, and optionally the
subword network (`subwords`), the features that the rows of the table `features` stand for (`feature_keys`), the stable
ids of words (`ids`), phrases, and a tokenizer of Hugging Face, which settled Params name by a digest of its content.
Beside them is the list of files that its text was read from. A version is valid once its manifest exists, which
`finish` writes last. `store` is the version's folder throughout.

A version or checkpoint gets its attempt, a random name, when it is created. The attempt binds tables, vocabulary,
manifest, list of files and index to each other, also where the folder has another name.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, Protocol

import numpy as np
import zarr

from daskw2v.config.params import Params
from daskw2v.corpus import stored_tokenizers
from daskw2v.corpus.files import Source
from daskw2v.errors import DamageError, TrainingError, counted
from daskw2v.features.keys import FeatureKeys
from daskw2v.features.settings import FEATURES
from daskw2v.models.stored.tables import SUBWORDS, TABLES, StoredRows, open_table, table_names
from daskw2v.objectives.subwords.network import Subwords
from daskw2v.release import VERSION
from daskw2v.safe_text import without_secrets
from daskw2v.store.arrays import finish_arrays, open_array, open_subgroup
from daskw2v.store.checksums import FOREIGN, LOCATION, ChunkChecksums
from daskw2v.store.durability import durable
from daskw2v.store.limits import refused, shown, typed
from daskw2v.store.storage import MANIFEST, Store
from daskw2v.vocabulary.ids import StableIds
from daskw2v.vocabulary.vocabulary import Vocabulary

_IDS, _FEATURES = "ids", "feature_keys"
_WORDS = ("words", "offsets", "counts")  # arrays of the vocabulary
# Entries of the manifest that are mappings
_PARTS = ("corpus", "metrics", "params", "resources", "retraining", "tables", "vocabulary")
_SOURCES = "sources"
_SOURCES_FILE = f"{_SOURCES}.json"
_TOKENIZER = "tokenizer"
ATTEMPT = "attempt"  # in manifests


class SavedWords(Protocol):
    """A vocabulary, in memory or in a work directory."""

    def save(self, group: zarr.Group, /) -> None:
        """Write its three arrays into a Zarr group, as `Vocabulary.save` does."""


def write_vocabulary(store: Store, vocabulary: SavedWords) -> None:
    """Write the vocabulary of a version: the words of the rows of its `input` table."""
    vocabulary.save(create_part(store, "vocabulary"))


def read_vocabulary(store: Store) -> Vocabulary:
    """Read a version's vocabulary.

    Raises
    ------
    StoreError
        If the version or its vocabulary is missing or damaged.
    VocabularyError
        If its arrays contradict each other.
    """
    return Vocabulary.load(open_subgroup(store.open_group(), "vocabulary"))


def write_subwords(store: Store, subwords: Subwords) -> None:
    """Write the subword network, which computes vectors of words from their characters."""
    subwords.save(create_part(store, SUBWORDS))


def read_subwords(store: Store) -> Subwords | None:
    """Read a version's subword network; return None if it has none.

    Raises
    ------
    StoreError
        If the version is missing, or its network is damaged.
    """
    group = _open_part(store, SUBWORDS)
    return None if group is None else Subwords.load(group)


def write_features(store: Store, keys: FeatureKeys) -> None:
    """Write the features that the rows of the table `features` stand for."""
    keys.save(_create_declared_part(store, _FEATURES))


def read_features(store: Store) -> FeatureKeys | None:
    """Read the features that the rows of a version's table `features` stand for, in order; None without this table.

    Raises
    ------
    StoreError
        If the version is missing, or the features are damaged or do not fit the table.
    """
    group = _open_part(store, _FEATURES)
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
    ids.save(_create_declared_part(store, _IDS))


def read_ids(store: Store) -> StableIds | None:
    """Read the stable ids of a version's words; return None if it has none.

    Raises
    ------
    StoreError
        If the version is missing, its ids are damaged, or there are not as many as words.
    VocabularyError
        If their arrays contradict each other.
    """
    group = _open_part(store, _IDS)
    if group is None:
        return None
    ids = StableIds.load(group)
    _check_ids(store, ids, "It is damaged: restore it from a copy.")
    return ids


def has_ids(store: Store) -> bool:
    """Return whether a version declares stable ids of its words; the ids are not read."""
    return bool(store.open_group().attrs.get(_IDS))


def assign_stable_ids(earlier: Store | None, new: Vocabulary) -> StableIds:
    """Return the stable ids of a new version.

    Parameters
    ----------
    earlier
        Folder of `Versions.newest_with_ids`, which knows all ids that were assigned, whether it is served or not. If
        there is none, the folder of the version used so far, whose rows become ids; None for a first version.
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
        If a table or the vocabulary is damaged or missing, or `input` and the vocabulary differ in length.
    """
    group = store.open_group()
    words = _count_words(store)
    tables = {name: open_table(store, name, group) for name in table_names(store, group)}
    if words != (rows := len(tables["input"])):
        problem = f"{store.url} has {counted(words, 'word')} and {counted(rows, 'input row')}."
        raise DamageError(problem, "Write the vocabulary it was trained on.", url=store.url)
    return tables


def finish(store: Store, manifest: Mapping[str, Any]) -> None:
    """Check a version and write its manifest, which makes it valid.

    Parameters
    ----------
    store
        Folder of the version, with tables, vocabulary and, if it has them, network, features and ids.
    manifest
        Metadata of the model: params, corpus, metrics. Shapes of tables, whether there is a network, version of the
        package, time (UTC) and attempt are added.

    Raises
    ------
    TrainingError
        If a table contains NaN or infinity.
    DamageError
        If a table is incomplete, a part is damaged or missing, or vocabulary, `input` table and ids differ in length.
    VocabularyError
        If an id belongs to two words or to none.
    """
    tables = open_tables(store)
    for name, table in tables.items():
        _check_finite(store, name, table)
    finish_tables(store, [table.array.chunk_checksums() for table in tables.values() if not table.array.is_finished])
    network, _, _ = read_subwords(store), read_ids(store), read_features(store)  # checks them, as opening does
    store.finish_manifest(
        {
            **manifest,
            TABLES: {name: list(table.shape) for name, table in tables.items()},
            SUBWORDS: network is not None,
            "daskw2v": VERSION,
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            ATTEMPT: read_attempt(store),
        },
        portable=True,
    )


def read_finished(store: Store) -> dict[str, Any] | None:
    """Return the manifest of a version, without secrets; None if the version is not finished.

    A version may come from anyone, so entries that have to be mappings are checked; null ones are left out. It may also
    come from a release that accepted URLs with secrets.

    Raises
    ------
    DamageError
        If it is damaged.
    FormatError
        If another daskw2v wrote it, or an entry that has to be a mapping is not one.
    """
    manifest = store.read_manifest()
    if manifest is None or "tables" not in manifest:
        return None
    url = f"{store.url}/{MANIFEST}"
    for name in _PARTS:
        if manifest.get(name) is None:
            manifest.pop(name, None)
        elif not isinstance(manifest[name], dict):
            raise refused(url, f"holds {name}={shown(manifest[name])}")
    return dict(without_secrets(manifest))


def write_sources(store: Store, sources: Iterable[Source]) -> None:
    """Write the list of files that a version's text was read from."""
    values = {_SOURCES: [asdict(source) for source in sources], ATTEMPT: read_attempt(store)}
    store.finish_manifest(values, _SOURCES_FILE, portable=True)


def read_sources(store: Store) -> list[Source] | None:
    """Read the list of files that a version's text was read from; None if the version has none.

    Raises
    ------
    StoreError
        If the list is damaged, or of another version.
    """
    values = store.read_manifest(_SOURCES_FILE)
    if values is None:
        return None
    check_attempt(store, values, _SOURCES_FILE)
    url = f"{store.url}/{_SOURCES_FILE}"
    match values:
        case {"sources": [*sources]}:
            return [typed(Source, source, url) for source in sources]
    raise DamageError.of(url, "is not a list of a version's files")


def write_tokenizer(store: Store, work: Store, params: Params) -> None:
    """Copy the tokenizer of settled Params, if it is of Hugging Face, from the work directory `work` to a version."""
    if stored_tokenizers.is_settled_file(params.tokenizer):
        write_tokenizer_json(store, stored_tokenizers.read_stored(work, str(params.tokenizer)))


def write_tokenizer_json(store: Store, content: bytes) -> None:
    """Write the content of a tokenizer.json to a version."""
    stored_tokenizers.write_json(create_part(store, _TOKENIZER), content)


def read_tokenizer(store: Store, name: str) -> bytes | None:
    """Return the tokenizer.json of a model, which settled Params name `name`; None if the model was saved without it.

    Raises
    ------
    DamageError
        If its digest is not that in `name`, or it is damaged.
    """
    if _TOKENIZER not in store.children():
        return None
    group = open_subgroup(store.open_group(), _TOKENIZER)
    return stored_tokenizers.read_tokenizer(group, name, f"{store.url}/{_TOKENIZER}")


@durable()
def finish_tables(store: Store, written: Collection[ChunkChecksums]) -> None:
    """Bind the chunks of tables to their positions in the version; from then on other chunks are refused.

    Parameters
    ----------
    store
        Folder of the version.
    written
        The results of `write_table_rows` or `write_partition` of all tasks.

    Raises
    ------
    DamageError
        If a chunk was not written.
    """
    finish_arrays(store.open_group(writable=True), written)


def create_part(store: Store, name: str) -> zarr.Group:
    """Create an empty group in a version, bound to the version's attempt; an existing group is deleted."""
    (store / name).remove()
    store.check()
    return store.open_group(writable=True).create_group(name)


def read_attempt(store: Store) -> str:
    """Read the attempt of a version, its random name; "" if an older daskw2v wrote it.

    Raises
    ------
    DamageError
        If the version is damaged.
    """
    binding: Any = store.open_group().attrs.get(LOCATION)
    return str(binding.get("attempt", "")) if isinstance(binding, dict) else ""


def check_attempt(store: Store, manifest: Mapping[str, Any], name: str = MANIFEST) -> None:
    """Check that a manifest, the file `name`, belongs to the tables beside it.

    Raises
    ------
    DamageError
        If the manifest is of another version or attempt.
    """
    if manifest.get(ATTEMPT, "") != read_attempt(store):
        raise DamageError.of(f"{store.url}/{name}", FOREIGN)


def _create_declared_part(store: Store, name: str) -> zarr.Group:
    """Create an optional group of a version, and declare it before, so that its loss is detected."""
    store.open_group(writable=True).attrs[name] = True
    return create_part(store, name)


def _open_part(store: Store, name: str) -> zarr.Group | None:
    """Return an optional group of a version, or None; raise DamageError if the group is declared but missing."""
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
    """Raise DamageError, with a remedy, unless a version has as many stable ids as words."""
    if len(ids) != (words := _count_words(store)):
        problem = f"{store.url} has {counted(words, 'word')} and {counted(len(ids), 'stable id')}."
        raise DamageError(problem, remedy, url=f"{store.url}/{_IDS}")


def _check_finite(store: Store, name: str, table: StoredRows) -> None:
    """Raise TrainingError if a table has a number that is not finite."""
    for start in range(0, len(table), table.chunk_rows):
        if not all(np.isfinite(chunk).all() for chunk in table.read_chunks(start)):
            stop = min(start + table.chunk_rows, len(table))
            raise TrainingError(
                f"Rows {start}:{stop} of table {name} of {store.url} are not finite: training diverged.",
                "Train with a lower alpha.",
            )
