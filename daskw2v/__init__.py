"""Word vectors from text too large for one machine, trained on any Dask cluster."""

from daskw2v.console import show_progress
from daskw2v.errors import Daskw2vError
from daskw2v.evaluation import evaluate
from daskw2v.models.export import export
from daskw2v.models.follower import Follower
from daskw2v.models.index.build import build_index
from daskw2v.models.index.vectors import IndexedVectors
from daskw2v.models.keyed_vectors import from_gensim, to_gensim
from daskw2v.models.phrases import Phrases
from daskw2v.models.vectors import Vectors
from daskw2v.models.versions import Versions
from daskw2v.models.word2vec import import_word2vec
from daskw2v.params import Params, Resources
from daskw2v.phrases.build import build_phrases
from daskw2v.release import VERSION as __version__
from daskw2v.retrain import retrain
from daskw2v.retraining.gates import Gates
from daskw2v.retraining.notify import Notices
from daskw2v.retraining.policy import Policy
from daskw2v.shards.encode import build_corpus
from daskw2v.storage import Store
from daskw2v.train import build_matrix, train, train_model
from daskw2v.vocabulary.count import build_vocabulary

__all__ = [
    "Daskw2vError",
    "Follower",
    "Gates",
    "IndexedVectors",
    "Notices",
    "Params",
    "Phrases",
    "Policy",
    "Resources",
    "Store",
    "Vectors",
    "Versions",
    "__version__",
    "build_corpus",
    "build_index",
    "build_matrix",
    "build_phrases",
    "build_vocabulary",
    "evaluate",
    "export",
    "from_gensim",
    "import_word2vec",
    "retrain",
    "show_progress",
    "to_gensim",
    "train",
    "train_model",
]
