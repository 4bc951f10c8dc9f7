"""Word vectors from text too large for one machine, trained on any Dask cluster."""

from daskw2v.errors import Daskw2vError
from daskw2v.evaluation import evaluate
from daskw2v.models.export import export
from daskw2v.models.phrases import Phrases
from daskw2v.models.vectors import Vectors
from daskw2v.models.versions import Versions
from daskw2v.models.word2vec import import_word2vec
from daskw2v.params import Params, Resources
from daskw2v.phrases.build import build_phrases
from daskw2v.shards.encode import build_corpus
from daskw2v.storage import Store
from daskw2v.train import build_matrix, train, train_model
from daskw2v.vocabulary.count import build_vocabulary

__all__ = [
    "Daskw2vError",
    "Params",
    "Phrases",
    "Resources",
    "Store",
    "Vectors",
    "Versions",
    "build_corpus",
    "build_matrix",
    "build_phrases",
    "build_vocabulary",
    "evaluate",
    "export",
    "import_word2vec",
    "train",
    "train_model",
]
