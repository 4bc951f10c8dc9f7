"""gensim and fastText behind one interface: training speed of both, and gensim's vectors.

Words are counted as ours are: raw words of the vocabulary, before subsampling, and only training is timed.

* gensim trains from `corpus_file`, its fastest way; `train` alone is timed.
* fastText (without n-grams where Params have none, which makes it word2vec) counts words and makes its tables in the
  same call: the time of a run without any epoch is taken off that of a run of one. Its epoch lasts until as many words
  of the vocabulary are trained as the text holds words of any kind, ends of lines included; these it takes for words,
  </s>, and trains them too. Both are counted for what they are: its speed is that of the words of our vocabulary. Its
  CBOW always averages. Each run is a process of its own, since version 0.9.3 with less than ten threads leaves part of
  its input table as memory happened to be: only fresh memory, all zeros, does not end in NaN.

Both are imported when they are asked for: what only reads scores that are kept needs neither.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.epochs import Epoch
from benchmarks.stopwatch import stopwatch
from daskw2v.config.params import Params
from daskw2v.extras import needed
from daskw2v.features.settings import NGrams
from daskw2v.models.queries.vectors import Vectors
from daskw2v.sampling.weights import NS_EXPONENT
from daskw2v.vocabulary.count import StoredVocabulary
from daskw2v.vocabulary.vocabulary import Vocabulary

# fastText starts from tables that it fills in part only, and ends with "Encountered NaN" where they hold what was there
# before. This makes glibc's malloc fill with zeros.
ZEROED = {"MALLOC_PERTURB_": "255"}


class Kind(NamedTuple):
    """An objective: from each context or from all at once; by hierarchical softmax or by negatives."""

    skip_gram: bool
    tree: bool


KINDS = {
    "sgns": Kind(skip_gram=True, tree=False),
    "cbow_ns": Kind(skip_gram=False, tree=False),
    "sg_hs": Kind(skip_gram=True, tree=True),
    "cbow_hs": Kind(skip_gram=False, tree=True),
}


PAIR = "daskw2v, pair"  # with negatives drawn for each pair, as theirs are
ABOUT = {  # for records
    "gensim": "the same arguments, from `corpus_file`; it draws negatives for each pair",
    "fasttext": "the same arguments; it draws negatives for each pair, and trains ends of lines too",
}


def gensim_arguments(params: Params, threads: int) -> dict[str, Any]:
    """Return what gensim calls the same training."""
    kind = KINDS[params.objective.name]
    same = (
        "vector_size",
        "window",
        "shrink_windows",
        "min_count",
        "sample",
        "alpha",
        "min_alpha",
        "epochs",
        "seed",
    )
    return {
        **{name: getattr(params, name) for name in same},
        "ns_exponent": params.flat().get("ns_exponent") or NS_EXPONENT,
        "sg": int(kind.skip_gram),
        "hs": int(kind.tree),
        "negative": params.flat().get("negative", 0),
        "cbow_mean": int(params.flat().get("cbow_mean", True)),
        "workers": threads,
    }


def _gensim_model(text: Path, params: Params, threads: int) -> Any:
    model = needed("gensim.models", "bench").Word2Vec(**gensim_arguments(params, threads))
    model.build_vocab(corpus_file=str(text))
    return model


def _train_gensim(model: Any, text: Path, epochs: int) -> None:
    examples, words = model.corpus_count, model.corpus_total_words
    model.train(corpus_file=str(text), total_examples=examples, total_words=words, epochs=epochs)


def train_gensim(text: Path, params: Params, threads: int) -> Vectors:
    """Train as `params` say, and return the vectors in our form, so that the same code judges them."""
    model = _gensim_model(text, params, threads)
    _train_gensim(model, text, params.epochs)
    words = model.wv.index_to_key
    counts = [model.wv.get_vecattr(word, "count") for word in words]
    return Vectors(Vocabulary.from_words(words, counts), np.ascontiguousarray(model.wv.vectors, np.float32))


def gensim_epoch(text: Path, vocabulary: StoredVocabulary, params: Params, threads: int) -> Callable[[], Epoch]:
    """Return what trains an epoch."""
    model = _gensim_model(text, params, threads)

    def measure() -> Epoch:
        took = stopwatch()
        _train_gensim(model, text, 1)
        return Epoch(vocabulary.total, *took())

    return measure


def fasttext_arguments(text: Path, params: Params, threads: int) -> dict[str, Any]:
    """Return what fastText calls the same training."""
    kind, ngrams = KINDS[params.objective.name], NGrams.find(params)
    return {
        "input": str(text),
        "model": "skipgram" if kind.skip_gram else "cbow",
        "loss": "hs" if kind.tree else "ns",
        "dim": params.vector_size,
        "ws": params.window,
        "neg": params.flat().get("negative", 0),
        "minCount": params.min_count,
        "t": params.sample or 1.0,  # keeps a word of frequency f with sqrt(t/f) + t/f: 1 keeps all
        "lr": params.alpha,
        "thread": threads,
        "minn": 0 if ngrams is None else ngrams.minn,
        "maxn": 0 if ngrams is None else ngrams.maxn,
        "bucket": 0 if ngrams is None else ngrams.bucket,
        "verbose": 0,
    }


def fasttext_epoch(text: Path, vocabulary: StoredVocabulary, params: Params, threads: int) -> Callable[[], Epoch]:
    """Return what trains an epoch."""
    lines = text.read_bytes().count(b"\n")
    words = (vocabulary.raw_words + lines) * vocabulary.total / (vocabulary.total + lines)  # trained in its epoch
    command = [sys.executable, "-m", "benchmarks.fasttext_epoch", json.dumps(fasttext_arguments(text, params, threads))]
    environment = {**os.environ, **ZEROED}

    def measure() -> Epoch:
        answer = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment).stdout
        return Epoch(words, *json.loads(answer))

    return measure


EPOCHS = {"gensim": gensim_epoch, "fasttext": fasttext_epoch}
