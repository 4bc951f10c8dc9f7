"""Opens a version: all parts of it that queries need."""

from typing import Any, NamedTuple

from daskw2v.errors import StoreError, counted
from daskw2v.features.choice import FEATURES
from daskw2v.features.keys import FeatureKeys
from daskw2v.models.attempts import check_attempt
from daskw2v.models.composed import FeatureVectors
from daskw2v.models.manifest import read_finished
from daskw2v.models.rows import PiecedRows, StoredRows
from daskw2v.models.store import read_features, read_ids, read_subwords, read_vocabulary
from daskw2v.models.tables import open_table
from daskw2v.objectives.subwords.network import Subwords
from daskw2v.store.memory import free_memory
from daskw2v.store.storage import Store
from daskw2v.types import Float32Array, Int64Array
from daskw2v.vocabulary.vocabulary import Vocabulary


class Opened(NamedTuple):
    """The fields of `Vectors`."""

    vocabulary: Vocabulary
    vectors: Float32Array | StoredRows
    metadata: dict[str, Any]
    url: str
    subwords: Subwords | None
    stable_ids: Int64Array | None
    features: FeatureVectors | None


def open_model(store: Store, in_memory: bool | None) -> Opened:
    """Open a version; by default, its rows are in memory if they take less than half of what is available.

    Raises
    ------
    StoreError
        If it is damaged, or was deleted.
    VocabularyError
        If its vocabulary or its stable ids are damaged.
    """
    stored, vocabulary = open_table(store, "input"), read_vocabulary(store)
    if len(vocabulary) != len(stored):
        raise StoreError(
            f"{store.url} has {counted(len(vocabulary), 'word')} and {counted(len(stored), 'input row')}.",
            "It is damaged: take it from a copy, or delete it and train again.",
        )
    if in_memory is None:
        in_memory = stored.nbytes < free_memory() / 2
    rows = stored if not in_memory else PiecedRows(stored.array) if PiecedRows.can_hold(stored.array) else stored[:]
    ids, manifest = read_ids(store), read_finished(store)
    if manifest is not None:
        check_attempt(store, manifest)
    keys = read_features(store)
    features = None if keys is None else _features(store, keys, in_memory)
    stable_ids = None if ids is None else ids.ids
    return Opened(vocabulary, rows, manifest or {}, store.url, read_subwords(store), stable_ids, features)


def _features(store: Store, keys: FeatureKeys, in_memory: bool) -> FeatureVectors:
    """Return the rows of features, in memory where those of words are."""
    rows = open_table(store, FEATURES)
    mapped = PiecedRows(rows.array) if in_memory and PiecedRows.can_hold(rows.array) else rows
    return FeatureVectors(keys, mapped[:] if in_memory and mapped is rows else mapped)
