"""All that a version holds for queries, read from its place."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import psutil
from distributed.system import MEMORY_LIMIT

from daskw2v.errors import StoreError
from daskw2v.models.rows import Floats, StoredRows
from daskw2v.models.store import open_table, read_ids, read_subwords, read_vocabulary
from daskw2v.objectives.subwords.network import Subwords
from daskw2v.storage import Store
from daskw2v.vocabulary.vocabulary import Vocabulary
from daskw2v.wording import counted


class Opened(NamedTuple):
    """What `Vectors` are made of."""

    vocabulary: Vocabulary
    vectors: Floats | StoredRows
    metadata: dict[str, Any]
    url: str
    subwords: Subwords | None
    stable_ids: npt.NDArray[np.int64] | None


def open_model(store: Store, in_memory: bool | None) -> Opened:
    """Open a version; by default its rows are read where they take less than half of the memory available.

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
        in_memory = stored.nbytes < min(psutil.virtual_memory().available, MEMORY_LIMIT) / 2
    rows = stored[:] if in_memory else stored
    ids = read_ids(store)
    return Opened(
        vocabulary, rows, store.read_manifest() or {}, store.url, read_subwords(store), None if ids is None else ids.ids
    )
