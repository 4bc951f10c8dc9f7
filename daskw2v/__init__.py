"""Word vectors from text too large for one machine, trained on any Dask cluster.

The module of a public name is imported when the name is first used, so that queries of a model load neither compiler
nor cluster. The building blocks of `train` are in `daskw2v.stages`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from daskw2v import stages as stages
    from daskw2v.cluster.console import show_progress
    from daskw2v.config.params import Params
    from daskw2v.config.resources import Resources
    from daskw2v.errors import Daskw2vError
    from daskw2v.estimators.estimators import Item2Vec, Node2Vec, Word2Vec
    from daskw2v.evaluation import evaluate
    from daskw2v.evaluation.datasets import datasets
    from daskw2v.features.settings import FeatureTable, NGrams, NGramsAndTable
    from daskw2v.models.follower import Follower
    from daskw2v.models.formats.export import export
    from daskw2v.models.formats.importing import import_vectors
    from daskw2v.models.formats.keyed_vectors import from_gensim, to_gensim
    from daskw2v.models.formats.word2vec import import_word2vec
    from daskw2v.models.index.vectors import IndexedVectors, build_index
    from daskw2v.models.opening import open
    from daskw2v.models.queries.vectors import Vectors
    from daskw2v.models.versions.phrases import Phrases
    from daskw2v.models.versions.versions import Versions
    from daskw2v.objectives.settings import CBOW, CBOWHS, SGNS, SkipGramHS, SubwordNetwork, WordContextMatrix
    from daskw2v.phrases.settings import PhraseDetection
    from daskw2v.release import VERSION as __version__
    from daskw2v.reports.compare import compare
    from daskw2v.reports.page import report
    from daskw2v.retraining.gates import Gates
    from daskw2v.retraining.notify import Notices
    from daskw2v.retraining.policy import Policy
    from daskw2v.retraining.promote import promote
    from daskw2v.retraining.retrain import retrain
    from daskw2v.sequences.settings import EdgeList, Sessions, Walks
    from daskw2v.sequences.sources import Events, Graph
    from daskw2v.training.averaging.settings import Averaging
    from daskw2v.training.columns.settings import Columns
    from daskw2v.training.devices.settings import CPU, Cuda
    from daskw2v.training.pipeline import items, train, walks
    from daskw2v.training.preparation.before_reading import estimate, plan
    from daskw2v.training.preparation.plan import Plan
    from daskw2v.training.rotation.settings import Rotation
    from daskw2v.training.start.base_settings import BaseModel, BaseVectors
    from daskw2v.training.warm_up import warm_up
    from daskw2v.training.watch.callbacks import Callback, TrainingRecord
    from daskw2v.training.watch.loggers import MLflowLogger, TensorBoardLogger
    from daskw2v.training.watch.stopping_settings import EarlyStopping

__all__ = [
    "CBOW",
    "CBOWHS",
    "CPU",
    "SGNS",
    "Averaging",
    "BaseModel",
    "BaseVectors",
    "Callback",
    "Columns",
    "Cuda",
    "Daskw2vError",
    "EarlyStopping",
    "EdgeList",
    "Events",
    "FeatureTable",
    "Follower",
    "Gates",
    "Graph",
    "IndexedVectors",
    "Item2Vec",
    "MLflowLogger",
    "NGrams",
    "NGramsAndTable",
    "Node2Vec",
    "Notices",
    "Params",
    "PhraseDetection",
    "Phrases",
    "Plan",
    "Policy",
    "Resources",
    "Rotation",
    "Sessions",
    "SkipGramHS",
    "SubwordNetwork",
    "TensorBoardLogger",
    "TrainingRecord",
    "Vectors",
    "Versions",
    "Walks",
    "Word2Vec",
    "WordContextMatrix",
    "__version__",
    "build_index",
    "compare",
    "datasets",
    "estimate",
    "evaluate",
    "export",
    "from_gensim",
    "import_vectors",
    "import_word2vec",
    "items",
    "open",
    "plan",
    "promote",
    "report",
    "retrain",
    "show_progress",
    "to_gensim",
    "train",
    "walks",
    "warm_up",
]

_NAMES = {  # public names, by the modules that have them
    "cluster.console": "show_progress",
    "config.params": "Params",
    "config.resources": "Resources",
    "errors": "Daskw2vError",
    "estimators.estimators": "Item2Vec Node2Vec Word2Vec",
    "evaluation": "evaluate",
    "evaluation.datasets": "datasets",
    "features.settings": "FeatureTable NGrams NGramsAndTable",
    "models.follower": "Follower",
    "models.formats.export": "export",
    "models.formats.importing": "import_vectors",
    "models.formats.keyed_vectors": "from_gensim to_gensim",
    "models.formats.word2vec": "import_word2vec",
    "models.index.vectors": "IndexedVectors build_index",
    "models.opening": "open",
    "models.queries.vectors": "Vectors",
    "models.versions.phrases": "Phrases",
    "models.versions.versions": "Versions",
    "objectives.settings": "CBOW CBOWHS SGNS SkipGramHS SubwordNetwork WordContextMatrix",
    "phrases.settings": "PhraseDetection",
    "release": "__version__",
    "reports.compare": "compare",
    "reports.page": "report",
    "retraining.gates": "Gates",
    "retraining.notify": "Notices",
    "retraining.policy": "Policy",
    "retraining.promote": "promote",
    "retraining.retrain": "retrain",
    "sequences.settings": "EdgeList Sessions Walks",
    "sequences.sources": "Events Graph",
    "training.averaging.settings": "Averaging",
    "training.columns.settings": "Columns",
    "training.devices.settings": "CPU Cuda",
    "training.pipeline": "items train walks",
    "training.preparation.plan": "Plan",
    "training.preparation.before_reading": "estimate plan",
    "training.rotation.settings": "Rotation",
    "training.start.base_settings": "BaseModel BaseVectors",
    "training.warm_up": "warm_up",
    "training.watch.callbacks": "Callback TrainingRecord",
    "training.watch.loggers": "MLflowLogger TensorBoardLogger",
    "training.watch.stopping_settings": "EarlyStopping",
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}

_INSTEAD = {  # functions of gensim and fastText, and the function of daskw2v instead
    "load": "open(url)",
    "load_model": "open(url)",
    "train_unsupervised": "train(text, maxn=6)",
    "FastText": "Word2Vec(maxn=6)",
    "KeyedVectors": "Vectors",
}
_STAGES = (  # names of `stages`
    "Store", "build_corpus", "build_matrix", "build_phrases", "build_vocabulary", "corpus_ids", "train_model",
)  # fmt: skip


def __dir__() -> list[str]:
    return __all__


if not TYPE_CHECKING:  # with __getattr__, mypy would accept any name

    def __getattr__(name: str) -> Any:
        """Import the object of a public name, and keep it as an attribute."""
        if name == "stages":
            return import_module("daskw2v.stages")
        if name in _STAGES:
            raise AttributeError(f"daskw2v.{name} is daskw2v.stages.{name} now.", name=name)
        if name not in _MODULES:
            remedy = f" Give daskw2v.{_INSTEAD[name]}." if name in _INSTEAD else ""
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}.{remedy}", name=name)
        module = import_module(f"daskw2v.{_MODULES[name]}")
        globals()[name] = value = getattr(module, "VERSION" if name == "__version__" else name)
        return value
