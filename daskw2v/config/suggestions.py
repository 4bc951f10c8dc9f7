"""Suggestions for a name that is no parameter: the parameter that another library calls so, or the nearest name."""

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import NamedTuple


class _Suggestion(NamedTuple):
    """The parameter that another library's name means, and a note; with name "", a note why there is no parameter."""

    name: str
    note: str = ""


_SIZE, _EPOCHS, _WINDOW, _RATE = (_Suggestion(name) for name in ("vector_size", "epochs", "window", "alpha"))
_SKIP_GRAM = _Suggestion("objective", "sgns and sg_hs are skip-gram, cbow_ns and cbow_hs are CBOW")
_TREE = _Suggestion("objective", "sg_hs and cbow_hs have hierarchical softmax, sgns and cbow_ns negative sampling")
_LISTENER = _Suggestion("", "The listener of train receives its progress")
_WALKS = _Suggestion("number")
_TUNE = _Suggestion("", "Nothing is tuned by itself: train with other Params, and compare the models by evaluate")
_TEXT = _Suggestion("", "The text is the first argument of train: files, patterns or URLs")

_MIN_SIMILARITY = 0.75  # of a misspelled name and the name that is meant
# Names of gensim, old ones among them, of word2vec.c, fastText, Spark and packages of node2vec
_SUGGESTIONS = {
    "size": _SIZE, "dim": _SIZE, "dimension": _SIZE, "dimensions": _SIZE, "layer1_size": _SIZE,
    "vectorsize": _SIZE,
    "iter": _EPOCHS, "iterations": _EPOCHS, "epoch": _EPOCHS, "n_epochs": _EPOCHS,
    "maxiter": _EPOCHS,
    "ws": _WINDOW, "window_size": _WINDOW, "windowsize": _WINDOW,
    "neg": _Suggestion("negative"),
    "lr": _RATE, "learning_rate": _RATE, "start_alpha": _RATE, "stepsize": _RATE,
    "end_alpha": _Suggestion("min_alpha"),
    "lrupdaterate": _Suggestion("", "The learning rate falls with every piece of text: there is no interval to set"),
    "t": _Suggestion("sample"), "subsample": _Suggestion("sample"),
    "mincount": _Suggestion("min_count"),
    "max_vocab_size": _Suggestion("max_final_vocab", "words are counted exactly, in bounded memory"),
    "trim_rule": _Suggestion("vocabulary", "a list of the words to keep, beside min_count and max_final_vocab"),
    "read_vocab": _Suggestion("vocabulary"),
    "sorted_vocab": _Suggestion("", "Words are always in order of their counts"),
    "sg": _SKIP_GRAM, "cbow": _SKIP_GRAM, "model": _SKIP_GRAM,
    "hs": _TREE, "loss": _TREE, "ns": _TREE,
    "min_n": _Suggestion("minn"), "max_n": _Suggestion("maxn"),
    "wordngrams": _Suggestion("phrases"), "threshold": _Suggestion("phrase_threshold"),
    "scoring": _Suggestion("phrase_scoring"),
    "workers": _Suggestion("threads", "worker processes of a local cluster are workers of Resources"),
    "thread": _Suggestion("threads"),
    "batch_words": _Suggestion("", "Threads take as much text at a time as suits them: there is no size to set"),
    "pair_epochs": _Suggestion("", "Each epoch draws pairs of its own"),
    "compute_loss": _Suggestion("", "The loss is always computed: it is among a model's metrics"),
    "flush_words": _Suggestion("", "Objective and number of threads set how often threads flush their copies of rows"),
    "mlflow_experiment": _Suggestion("", "The experiment is that of MLFLOW_EXPERIMENT_NAME, or else daskw2v"),
    "hashfxn": _Suggestion("", "First vectors are drawn by seed and number of the word, not by a hash"),
    "pretrainedvectors": _Suggestion("base_vectors"),
    "saveoutput": _Suggestion("", "A version has its output table, which output_rows of the vectors reads"),
    **dict.fromkeys(
        ("autotunevalidationfile", "autotunemetric", "autotunepredictions", "autotuneduration", "autotunemodelsize"),
        _TUNE,
    ),
    "numpartitions": _Suggestion("n_partitions"),
    "maxsentencelength": _Suggestion("", "Sentences are as long as their lines"),
    "inputcol": _Suggestion("column"),
    "outputcol": _Suggestion("", "transform returns an array, which has no columns to name"),
    "walk_length": _Suggestion("length"), "num_walks": _WALKS, "n_walks": _WALKS, "walks_per_node": _WALKS,
    "weight_key": _Suggestion("weight"),
    "quiet": _Suggestion("", "listener=None trains in silence"),
    "callbacks": _LISTENER, "report_delay": _LISTENER, "verbose": _LISTENER,
    "sentences": _TEXT, "corpus_file": _TEXT, "input": _TEXT, "train": _TEXT,
}  # fmt: skip


def suggest(name: str, known: Mapping[str, Sequence[str]], written: Callable[[str, str], str]) -> str | None:
    """Return a sentence on what to give instead of a name that is no parameter, or on leaving it out.

    For a parameter of another library, the sentence names the equivalent; else the most similar parameter. The result
    is None if there is neither.

    Parameters
    ----------
    name
        The name as it was typed, perhaps with the dashes of an option.
    known
        The names of parameters, by the name of their class; a name of several classes belongs to the first.
    written
        Function from the names of a class and of a parameter to the text for the parameter.
    """
    plain = name.lstrip("-").replace("-", "_")
    owners: dict[str, str] = {}
    for owner, names in known.items():
        owners = {**dict.fromkeys(names, owner), **owners}
    suggestion = _SUGGESTIONS.get(plain.lower())
    if suggestion is not None and suggestion.name in owners:
        note = f" ({suggestion.note})" if suggestion.note else ""
        return f"Give {written(owners[suggestion.name], suggestion.name)}{note}."
    if suggestion is not None and not suggestion.name:
        return f"Leave it out. {suggestion.note}."
    near = [plain] if plain in owners else get_close_matches(plain.lower(), owners, n=1, cutoff=_MIN_SIMILARITY)
    return f"Give {written(owners[near[0]], near[0])}." if near else None
