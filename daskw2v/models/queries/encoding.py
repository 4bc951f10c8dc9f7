"""Vectors of texts: the means of their words' vectors, in which rare words may count more.

Smooth inverse frequency is of Arora et al. (2017), "A Simple but Tough-to-Beat Baseline for Sentence Embeddings",
section 3, algorithm 1, line 2: a word of probability p counts a / (a + p). Line 4 of the algorithm removes the common
direction of a set of sentences, which an export of words does not have.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from daskw2v.config.settings import number
from daskw2v.config.tokenizers import REGEX, TOKENIZER_FILE, is_tokenizer_file
from daskw2v.corpus.pieces import RawText, Tokens
from daskw2v.corpus.stored_tokenizers import is_settled_file, load_tokenizer
from daskw2v.corpus.tokenizers import TOKENIZERS, Tokenizer, make_tokenizer
from daskw2v.errors import InputError, ParameterError
from daskw2v.models.queries.vectors import Vectors
from daskw2v.models.stored.blocks import cut
from daskw2v.models.stored.files import open_for_reading
from daskw2v.models.versions.phrases import Phrases
from daskw2v.types import Float32Array
from daskw2v.vocabulary.vocabulary import Word, as_text, is_word

TEXTS_AT_ONCE = 1 << 12  # texts whose words are looked up at once
DEFAULT_SIF = 1e-3  # a, as in the paper
_RANGE = number(0, open_low=True)  # of a
_BLANKS = bytes(max(byte, 0x20) for byte in range(256))  # bytes <= 0x20 separate tokens

_log = logging.getLogger(__name__)

TextSplitter = Callable[[str], Sequence[str]]


def encode(vectors: Vectors, texts: Any, sif: float | None, tokenizer: Any) -> Float32Array:
    """Return the mean vectors of texts; arguments and errors are as in `Vectors.encode`."""
    if isinstance(texts, bytes) or not isinstance(texts, Iterable):
        raise ParameterError(f"{texts!r} is neither a text nor a list of texts.", "Give texts in a list.")
    if sif is not None:
        check_sif(sif)
    weights = None if sif is None else sif_weights(vectors, sif)
    split, listed = _Splitter(vectors, tokenizer), [texts] if isinstance(texts, str) else list(texts)
    means = np.zeros((len(listed), vectors.vector_size), np.float32)
    for part in cut(len(listed), TEXTS_AT_ONCE):
        means[part] = _mean_vectors(vectors, [split(text) for text in listed[part]], weights)
    return np.asarray(means[0]) if isinstance(texts, str) else means


def check_sif(a: Any) -> None:
    """Raise ParameterError if `a`, the constant of smooth inverse frequency, is not a finite number above 0."""
    if not _RANGE.check(a):
        raise ParameterError(f"sif={a!r} is not {_RANGE.bound}.", f"Give {DEFAULT_SIF:g}, or leave it out.")


def sif_weights(vectors: Vectors, a: float) -> Float32Array:
    """Return the weight a / (a + p) of each word, shape (V,) float32; p is the word's share of all counts.

    Raises
    ------
    InputError
        If no word has a count.
    """
    counts = vectors.vocabulary.counts
    total = int(counts.sum())
    if not total:
        problem = f"sif={a:g}: the words of {vectors.url or 'these vectors'} have no counts."
        raise InputError(problem, "Leave sif out, or export a model that was trained by daskw2v.")
    return (a / (a + counts / total)).astype(np.float32)


def find_tokenizer(vectors: Vectors, remedy: str) -> tuple[str, bytes | None]:
    """Return the name of a model's tokenizer, and the content of its tokenizer.json, or None for other tokenizers.

    The name is "whitespace" if the metadata have none.

    Raises
    ------
    InputError
        If the tokenizer is a tokenizer.json that the vectors lack; `remedy` ends the message.
    """
    name, content = str(vectors.metadata.get("params", {}).get("tokenizer", "whitespace")), vectors.tokenizer_json()
    if content is None and is_settled_file(name):
        problem = f"The model's tokenizer {name} is in the version that training wrote, which these vectors are not of."
        raise InputError(problem, remedy)
    return name, content


def _mean_vectors(vectors: Vectors, texts: list[Sequence[str]], weights: Float32Array | None) -> Float32Array:
    """Return the mean of the vectors of each text's known words, times their `weights`, (V,), shape (n, D).

    Words outside the vocabulary have the weight 1. A text without known words has zeros.
    """
    words = list(dict.fromkeys(word for text in texts for word in text))
    ids, rows, known = vectors._look_up_known(words)
    if weights is not None:
        rows[ids >= 0] *= weights[ids[ids >= 0], None]
    row_of = {word: row for row, word in enumerate(words) if known[row]}
    means = np.zeros((len(texts), vectors.vector_size), np.float32)
    for mean, text in zip(means, texts, strict=True):
        if known_rows := [row_of[word] for word in text if word in row_of]:
            mean[:] = rows[known_rows].mean(axis=0, dtype=np.float64)
    return means


class _Splitter:
    """Splits texts into words by a tokenizer, the model's if None, and joins phrases; lists of words are not split."""

    def __init__(self, vectors: Vectors, tokenizer: Any) -> None:
        self._vectors, self._tokenizer = vectors, tokenizer

    @cached_property
    def _split(self) -> TextSplitter:  # computed for the first text, as lists of words need no tokenizer
        split, phrases = _make_split(self._vectors, self._tokenizer), _read_phrases(self._vectors)
        return split if phrases is None else lambda text: phrases.apply(split(text))

    def __call__(self, text: str | Sequence[Word]) -> Sequence[str]:
        if isinstance(text, str):
            return self._split(text)
        words = None if isinstance(text, bytes) or not isinstance(text, Iterable) else list(text)
        if words is None or not all(map(is_word, words)):
            raise ParameterError(f"{text!r} is neither a text nor a list of words.", "Give texts, or lists of words.")
        return [as_text(word) for word in words]


def _read_phrases(vectors: Vectors) -> Phrases | None:
    """Return the phrases that words of the model's text were joined to; None without any, or without their version."""
    if not vectors.metadata.get("phrases"):
        return None
    if vectors._version is None or "phrases" not in vectors._version.children():
        _log.warning("Phrases of texts are not joined: they stay with the version of %s.", vectors)
        return None
    return Phrases._read(vectors._version)


def _make_split(vectors: Vectors, tokenizer: Any) -> TextSplitter:
    """Return the function that splits a text into words by a tokenizer; by the tokenizer of the model if None."""
    if tokenizer is None:
        tokenizer, content = find_tokenizer(vectors, "Open the version, or give tokenizer='tokenizer.json', the file.")
        if content is not None:
            return _split_by_json(content)
        if not tokenizer.startswith(REGEX) and TOKENIZERS.known(tokenizer) is None:
            raise InputError(
                f"The model's tokenizer is the function {tokenizer}, which no model loads by itself.",
                "Give it, if you trust it: encode(texts, tokenizer=function). Or give lists of words.",
            )
    elif is_tokenizer_file(tokenizer):
        with open_for_reading(tokenizer) as f:
            return _split_by_json(f.read())
    tokenize = make_tokenizer(tokenizer)
    return lambda text: _tokenize(tokenize, text)


def _split_by_json(content: bytes) -> TextSplitter:
    """Return the function that splits a text by a tokenizer of Hugging Face, the content of its tokenizer.json."""
    tokenizer = load_tokenizer(content, TOKENIZER_FILE)

    def split(text: str) -> list[str]:
        lines = tokenizer.encode_batch(text.split("\n"), add_special_tokens=False)
        return [token for line in lines for token in line.tokens]

    return split


def _tokenize(tokenizer: Tokenizer, text: str) -> list[str]:
    """Return the words of a text, split by a tokenizer of daskw2v."""
    # Lone surrogates, which UTF-8 does not have, are replaced like invalid bytes of a text
    data = text.encode("utf-8", "surrogatepass").decode("utf-8", "replace").encode()
    pieces: RawText | Tokens = tokenizer(data)
    if isinstance(pieces, RawText):
        return [token.decode() for token in pieces.data.translate(_BLANKS).split(b" ") if token]
    content, bounds = pieces.data.tobytes(), pieces.offsets.tolist()
    return [content[start:stop].decode() for start, stop in pairwise(bounds)]
