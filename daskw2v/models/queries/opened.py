"""Opens a version: all parts of it that queries need."""

from typing import Any, NamedTuple

from daskw2v.errors import StoreError, counted
from daskw2v.features.choice import FEATURES
from daskw2v.models.queries.composed import FeatureVectors
from daskw2v.models.stored.attempts import check_attempt
from daskw2v.models.stored.manifest import read_finished
from daskw2v.models.stored.rows import PiecedRows, StoredRows
from daskw2v.models.stored.store import read_features, read_ids, read_subwords, read_vocabulary
from daskw2v.models.stored.tables import open_table
from daskw2v.objectives.subwords.network import Subwords
from daskw2v.store.limits import free_memory
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
    keys = read_features(store)
    more = None if keys is None else open_table(store, FEATURES)
    if in_memory is None:
        in_memory = stored.nbytes + (0 if more is None else more.nbytes) < free_memory() / 2
    ids, manifest = read_ids(store), read_finished(store)
    if manifest is not None:
        check_attempt(store, manifest)
    features = None if keys is None or more is None else FeatureVectors(keys, _held(more, in_memory))
    rows, stable_ids = _held(stored, in_memory), None if ids is None else ids.ids
    return Opened(vocabulary, rows, manifest or {}, store.url, read_subwords(store), stable_ids, features)


def _held(stored: StoredRows, in_memory: bool) -> Float32Array | StoredRows:
    """Return rows as they are held: in the store; or in memory, as files that are mapped where these can be."""
    if not in_memory:
        return stored
    return PiecedRows(stored.array) if PiecedRows.can_hold(stored.array) else stored[:]
