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
from daskw2v.models.stored.files import reading
from daskw2v.models.versions.phrases import Phrases
from daskw2v.types import Float32Array
from daskw2v.vocabulary.vocabulary import Word, as_text, is_word

TEXTS_AT_ONCE = 1 << 12  # texts whose words are looked up at once
USUAL = 1e-3  # a, as the paper has it
_RANGE = number(0, open_low=True)  # of a
_BLANKS = bytes(max(byte, 0x20) for byte in range(256))  # bytes <= 0x20 separate tokens

_log = logging.getLogger(__name__)

Split = Callable[[str], Sequence[str]]


def encode(vectors: Vectors, texts: Any, sif: float | None, tokenizer: Any) -> Float32Array:
    """Return the vectors of texts; arguments and errors are as in `Vectors.encode`."""
    if isinstance(texts, bytes) or not isinstance(texts, Iterable):
        raise ParameterError(f"{texts!r} is neither a text nor a list of texts.", "Give texts in a list.")
    if sif is not None:
        check_sif(sif)
    weights = None if sif is None else sif_weights(vectors, sif)
    split, listed = _Words(vectors, tokenizer), [texts] if isinstance(texts, str) else list(texts)
    means = np.zeros((len(listed), vectors.vector_size), np.float32)
    for part in cut(len(listed), TEXTS_AT_ONCE):
        means[part] = _means(vectors, [split(text) for text in listed[part]], weights)
    return np.asarray(means[0]) if isinstance(texts, str) else means


def check_sif(a: Any) -> None:
    """Check the constant `a`.

    Raises
    ------
    ParameterError
        If `a` is not a finite number above 0.
    """
    if not _RANGE.check(a):
        raise ParameterError(f"sif={a!r} is not {_RANGE.bound}.", f"Give {USUAL:g}, or leave it out.")


def sif_weights(vectors: Vectors, a: float) -> Float32Array:
    """Return the weight of each word, shape (V,); its probability is its share of the counts of all words.

    Raises
    ------
    InputError
        If no word has a count.
    """
    counts = vectors.vocabulary.counts
    total = int(counts.sum())
    if not total:
        raise InputError(
            f"sif={a:g}: the words of {vectors.url or 'these vectors'} have no counts.",
            "Leave sif out, or export a model that was trained by daskw2v.",
        )
    return (a / (a + counts / total)).astype(np.float32)


def tokenizer_of(vectors: Vectors, remedy: str) -> tuple[str, bytes | None]:
    """Return the tokenizer that the model's text was split by, and the JSON of its file if it is of Hugging Face.

    Raises
    ------
    InputError
        If the file is not with the vectors; `remedy` ends the message.
    """
    name, content = str(vectors.metadata.get("params", {}).get("tokenizer", "whitespace")), vectors.tokenizer_json()
    if content is None and is_settled_file(name):
        raise InputError(
            f"The model's tokenizer {name} is in the version that training wrote, which these vectors are not of.",
            remedy,
        )
    return name, content


def _means(vectors: Vectors, texts: list[Sequence[str]], weights: Float32Array | None) -> Float32Array:
    words = list(dict.fromkeys(word for text in texts for word in text))
    ids, rows, known = vectors._look_up_known(words)
    if weights is not None:
        rows[ids >= 0] *= weights[ids[ids >= 0], None]
    row_of = {word: row for row, word in enumerate(words) if known[row]}
    means = np.zeros((len(texts), vectors.vector_size), np.float32)
    for mean, text in zip(means, texts, strict=True):
        if kept := [row_of[word] for word in text if word in row_of]:
            mean[:] = rows[kept].mean(axis=0, dtype=np.float64)
    return means


class _Words:
    """Splits texts by the model's tokenizer, or another one; lists of words stay."""

    def __init__(self, vectors: Vectors, tokenizer: Any) -> None:
        self._vectors, self._tokenizer = vectors, tokenizer

    @cached_property
    def _split(self) -> Split:  # made for the first text, as lists of words need no tokenizer
        split, phrases = _split_by(self._vectors, self._tokenizer), _phrases_of(self._vectors)
        return split if phrases is None else lambda text: phrases.apply(split(text))

    def __call__(self, text: str | Sequence[Word]) -> Sequence[str]:
        if isinstance(text, str):
            return self._split(text)
        words = None if isinstance(text, bytes) or not isinstance(text, Iterable) else list(text)
        if words is None or not all(map(is_word, words)):
            raise ParameterError(f"{text!r} is neither a text nor a list of words.", "Give texts, or lists of words.")
        return [as_text(word) for word in words]


def _phrases_of(vectors: Vectors) -> Phrases | None:
    """Return the phrases of the model's text; None if it has none."""
    if not vectors.metadata.get("phrases"):
        return None
    if vectors._version is None or "phrases" not in vectors._version.children():
        _log.warning("Phrases of texts are not joined: they stay with the version of %s.", vectors)
        return None
    return Phrases._read(vectors._version)


def _split_by(vectors: Vectors, tokenizer: Any) -> Split:
    """Return the function that splits a text by a tokenizer, or by the model's if it is None."""
    if tokenizer is None:
        tokenizer, content = tokenizer_of(vectors, "Open the version, or give tokenizer='tokenizer.json', the file.")
        if content is not None:
            return _of_json(content)
        if not tokenizer.startswith(REGEX) and TOKENIZERS.known(tokenizer) is None:
            raise InputError(
                f"The model's tokenizer is the function {tokenizer}, which no model loads by itself.",
                "Give it, if you trust it: encode(texts, tokenizer=function). Or give lists of words.",
            )
    elif is_tokenizer_file(tokenizer):
        with reading(tokenizer) as f:
            return _of_json(f.read())
    made = make_tokenizer(tokenizer)
    return lambda text: _tokens(made, text)


def _of_json(content: bytes) -> Split:
    tokenizer = load_tokenizer(content, TOKENIZER_FILE)

    def split(text: str) -> list[str]:
        lines = tokenizer.encode_batch(text.split("\n"), add_special_tokens=False)
        return [token for line in lines for token in line.tokens]

    return split


def _tokens(tokenizer: Tokenizer, text: str) -> list[str]:
    # Lone surrogates, which UTF-8 does not have, are replaced like invalid bytes of a text
    data = text.encode("utf-8", "surrogatepass").decode("utf-8", "replace").encode()
    pieces: RawText | Tokens = tokenizer(data)
    if isinstance(pieces, RawText):
        return [token.decode() for token in pieces.data.translate(_BLANKS).split(b" ") if token]
    content, bounds = pieces.data.tobytes(), pieces.offsets.tolist()
    return [content[start:stop].decode() for start, stop in pairwise(bounds)]
