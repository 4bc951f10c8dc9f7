"""Which parameter is meant by a name that is none: what other libraries call it, or the nearest name there is."""

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import NamedTuple


class _Meaning(NamedTuple):
    """The parameter that a name means, if any, and what else there is to say; without either it says nothing here."""

    name: str
    note: str = ""


_SIZE, _EPOCHS, _WINDOW, _RATE = (_Meaning(name) for name in ("vector_size", "epochs", "window", "alpha"))
_SKIP_GRAM = _Meaning("objective", "sgns and sg_hs are skip-gram, cbow_ns and cbow_hs are CBOW")
_TREE = _Meaning("objective", "sg_hs and cbow_hs have hierarchical softmax, sgns and cbow_ns negative sampling")
_CHARACTERS = _Meaning("objective", "subwords makes vectors of words' characters")
_LISTENER = _Meaning("", "The listener of train is told how far it is")
_TEXT = _Meaning("", "The text is the first argument of train: files, patterns or URLs")

_ALIKE = 0.75  # of a slip, and the name that it is one of
# Names of gensim, old ones among them, of word2vec.c and of fastText
_MEANINGS = {
    "size": _SIZE, "dim": _SIZE, "dimension": _SIZE, "dimensions": _SIZE, "layer1_size": _SIZE,
    "iter": _EPOCHS, "iterations": _EPOCHS, "epoch": _EPOCHS, "n_epochs": _EPOCHS,
    "ws": _WINDOW, "window_size": _WINDOW,
    "neg": _Meaning("negative"),
    "lr": _RATE, "learning_rate": _RATE, "start_alpha": _RATE, "end_alpha": _Meaning("min_alpha"),
    "lrupdaterate": _Meaning("", "The learning rate falls with every piece of text: there is no interval to set"),
    "t": _Meaning("sample"), "subsample": _Meaning("sample"),
    "mincount": _Meaning("min_count"),
    "max_vocab_size": _Meaning("max_final_vocab", "words are counted exactly, in bounded memory"),
    "trim_rule": _Meaning("vocabulary", "a list of the words to keep, beside min_count and max_final_vocab"),
    "read_vocab": _Meaning("vocabulary"),
    "sorted_vocab": _Meaning("", "Words are always in order of their counts"),
    "sg": _SKIP_GRAM, "cbow": _SKIP_GRAM, "model": _SKIP_GRAM,
    "hs": _TREE, "loss": _TREE, "ns": _TREE,
    "minn": _CHARACTERS, "maxn": _CHARACTERS, "min_n": _CHARACTERS, "max_n": _CHARACTERS, "bucket": _CHARACTERS,
    "wordngrams": _Meaning("phrases"), "threshold": _Meaning("phrase_threshold"),
    "scoring": _Meaning("phrase_scoring"), "delimiter": _Meaning("phrase_delimiter"),
    "workers": _Meaning("threads", "worker processes of a local cluster are workers of Resources"),
    "thread": _Meaning("threads"),
    "batch_words": _Meaning("", "Threads take as much text at a time as suits them: there is no size to set"),
    "compute_loss": _Meaning("", "The loss is always computed: it is among a model's metrics"),
    "hashfxn": _Meaning("", "First vectors are drawn by seed and number of the word, not by a hash"),
    "pretrainedvectors": _Meaning("base_model", "a version in the same work directory"),
    "callbacks": _LISTENER, "report_delay": _LISTENER, "verbose": _LISTENER,
    "sentences": _TEXT, "corpus_file": _TEXT, "input": _TEXT, "train": _TEXT,
}  # fmt: skip


def meaning(name: str, known: Mapping[str, Sequence[str]], written: Callable[[str, str], str]) -> str | None:
    """Say what to give in place of a name that is no parameter; None where nothing is like it.

    Parameters
    ----------
    name
        As it was given, with the dashes of an option.
    known
        The names that there are, by their class; of classes that share a name the first is meant.
    written
        Makes the text for a parameter of a class and a name.
    """
    plain = name.lstrip("-").replace("-", "_")
    owners: dict[str, str] = {}
    for owner, names in known.items():
        owners = {**dict.fromkeys(names, owner), **owners}
    meant = _MEANINGS.get(plain.lower())
    if meant is not None and meant.name in owners:
        note = f" ({meant.note})" if meant.note else ""
        return f"Give {written(owners[meant.name], meant.name)}{note}."
    if meant is not None and not meant.name:
        return f"Leave it out. {meant.note}."
    near = [plain] if plain in owners else get_close_matches(plain.lower(), owners, n=1, cutoff=_ALIKE)
    return f"Give {written(owners[near[0]], near[0])}." if near else None
