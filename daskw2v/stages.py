"""The stages of `train` as functions, and the class of the folder that they write to: building blocks for experts.

Examples
--------
>>> import daskw2v
>>> from daskw2v.stages import Store, build_corpus, build_vocabulary, train_model
>>> store, params = Store("stages"), daskw2v.Params(vector_size=8, min_count=1, epochs=1)
>>> how = {"store": store, "params": params, "resources": daskw2v.Resources(), "listener": None}
>>> corpus = build_corpus("text.txt", **how)
>>> vocabulary = build_vocabulary(corpus, **how)
>>> vectors = train_model(corpus, vocabulary, **how)
>>> len(vectors) == vocabulary.size
True
"""

from daskw2v.phrases.build import build_phrases
from daskw2v.shards.encode import build_corpus
from daskw2v.store.storage import Store
from daskw2v.training.pipeline import build_matrix, train_model
from daskw2v.vocabulary.count import build_vocabulary, corpus_ids

__all__ = ["Store", "build_corpus", "build_matrix", "build_phrases", "build_vocabulary", "corpus_ids", "train_model"]
