"""A work directory with versions that need no training."""

from pathlib import Path

import numpy as np

from daskw2v.models.stored.store import write_ids, write_vocabulary
from daskw2v.models.stored.tables import create_model, write_table_rows
from daskw2v.models.versions.versions import publish
from daskw2v.store.storage import Store
from daskw2v.vocabulary.ids import StableIds
from daskw2v.vocabulary.vocabulary import Vocabulary

OLD, NEW = "v0001-a", "v0002-b"


def write_model(folder: Path, *names: str) -> None:
    """Publish versions of 60 words."""
    words = ["king", "queen", "man", "woman", *(f"{'abcdefgh'[i % 8]}word{'xyz'[i % 3]}{i}" for i in range(56))]
    vocabulary = Vocabulary.from_words(words, range(90, 30, -1))
    models = Store(str(folder)) / "models"
    for number, name in enumerate(names):
        store = models / name
        create_model(store, {"input": (len(words), 8)}, row_block=16)
        rows = np.random.default_rng(number).standard_normal((len(words), 8)).astype(np.float32)
        write_table_rows(store, "input", 0, rows)
        write_vocabulary(store, vocabulary)
        write_ids(store, StableIds.first(vocabulary))
        publish(models, name, {"params": {"window": number}, "corpus": {"tokens": 9}, "metrics": {"loss": 1.0}})
