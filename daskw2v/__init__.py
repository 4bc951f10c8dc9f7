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
    from daskw2v.models.index.build import build_index
    from daskw2v.models.index.vectors import IndexedVectors
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
    from daskw2v.training.plan import Plan
    from daskw2v.training.planning import estimate, plan
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

_MODULES = {
    "PhraseDetection": "phrases.settings",
    "NGramsAndTable": "features.settings",
    "NGrams": "features.settings",
    "FeatureTable": "features.settings",
    "EarlyStopping": "training.watch.stopping_settings",
    "BaseVectors": "training.start.base_settings",
    "BaseModel": "training.start.base_settings",
    "SGNS": "objectives.settings",
    "CBOW": "objectives.settings",
    "SkipGramHS": "objectives.settings",
    "CBOWHS": "objectives.settings",
    "WordContextMatrix": "objectives.settings",
    "SubwordNetwork": "objectives.settings",
    "Averaging": "training.averaging.settings",
    "CPU": "training.devices.settings",
    "Cuda": "training.devices.settings",
    "Columns": "training.columns.settings",
    "Rotation": "training.rotation.settings",
    "show_progress": "cluster.console",
    "Params": "config.params",
    "Resources": "config.resources",
    "Daskw2vError": "errors",
    "Item2Vec": "estimators.estimators",
    "Node2Vec": "estimators.estimators",
    "Word2Vec": "estimators.estimators",
    "datasets": "evaluation.datasets",
    "evaluate": "evaluation",
    "export": "models.formats.export",
    "Follower": "models.follower",
    "import_vectors": "models.formats.importing",
    "build_index": "models.index.build",
    "IndexedVectors": "models.index.vectors",
    "from_gensim": "models.formats.keyed_vectors",
    "to_gensim": "models.formats.keyed_vectors",
    "open": "models.opening",
    "Phrases": "models.versions.phrases",
    "Vectors": "models.queries.vectors",
    "Versions": "models.versions.versions",
    "import_word2vec": "models.formats.word2vec",
    "__version__": "release",
    "compare": "reports.compare",
    "report": "reports.page",
    "Gates": "retraining.gates",
    "Notices": "retraining.notify",
    "Policy": "retraining.policy",
    "promote": "retraining.promote",
    "retrain": "retraining.retrain",
    "EdgeList": "sequences.settings",
    "Sessions": "sequences.settings",
    "Events": "sequences.sources",
    "Graph": "sequences.sources",
    "Walks": "sequences.settings",
    "Callback": "training.watch.callbacks",
    "TrainingRecord": "training.watch.callbacks",
    "estimate": "training.planning",
    "plan": "training.planning",
    "Plan": "training.plan",
    "items": "training.pipeline",
    "walks": "training.pipeline",
    "MLflowLogger": "training.watch.loggers",
    "TensorBoardLogger": "training.watch.loggers",
    "train": "training.pipeline",
    "warm_up": "training.warm_up",
}

# Names that were here before
_INSTEAD = {  # functions of gensim and fastText, and the function of daskw2v instead
    "load": "open(url)",
    "load_model": "open(url)",
    "train_unsupervised": "train(text, maxn=6)",
    "FastText": "Word2Vec(maxn=6)",
    "KeyedVectors": "Vectors",
}
_STAGES = (
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
