"""The stages of `train` one by one, and the folder that they write to: building blocks for experts."""

from daskw2v.phrases.build import build_phrases
from daskw2v.shards.encode import build_corpus
from daskw2v.store.storage import Store
from daskw2v.training.pipeline import build_matrix, train_model
from daskw2v.vocabulary.count import build_vocabulary
from daskw2v.vocabulary.text_ids import corpus_ids

__all__ = [
    "Store",
    "build_corpus",
    "build_matrix",
    "build_phrases",
    "build_vocabulary",
    "corpus_ids",
    "train_model",
]
