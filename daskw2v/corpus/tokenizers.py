"""How text becomes tokens."""

import importlib
import re
import sys
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from daskw2v.corpus.fingerprint import fingerprint
from daskw2v.corpus.pieces import Text, Tokens, tokens_of
from daskw2v.errors import Daskw2vError, InputError, ParameterError
from daskw2v.params import tokenizer_name
from daskw2v.wording import counted

Tokenizer = Callable[[bytes], Text | Tokens]
LineFunction = Callable[[list[str]], list[list[str]]]

_REGEX = "regex:"
_JOINERS = np.frombuffer(b"'-", np.uint8)


def make_tokenizer(spec: str | LineFunction) -> Tokenizer:
    """Make what turns valid UTF-8 that ends after a line, or between two tokens, into text or tokens.

    Parameters
    ----------
    spec
        - "whitespace": tokens lie between bytes <= 0x20;
        - "lower": the same, in lower case by Unicode's rules;
        - "normalize": NFKC, lower case, and only letters, marks and numbers are kept, with apostrophes and
          hyphens between two of them;
        - "regex:PATTERN": each match in a line is a token;
        - "package.module:function", or the function itself: takes a list of lines without their ends, returns
          for each a list of tokens.

    Raises
    ------
    ParameterError
        If the spec means nothing, the pattern is invalid or the function cannot be imported. The tokenizer
        itself raises it where the function returns something else.
    """
    if isinstance(spec, str) and spec in _BY_NAME:
        return _BY_NAME[spec]
    if isinstance(spec, str) and spec.startswith(_REGEX):
        return _Function(spec, _Pattern(_compiled(spec.removeprefix(_REGEX))))
    return _Function(tokenizer_name(spec), _users(spec))


def tokenizer_identity(spec: str | LineFunction) -> list[str]:
    """Return what stands for a tokenizer: its name and, of a user's function, the fingerprint of its code.

    Raises
    ------
    ParameterError
        As `make_tokenizer` does.
    """
    ours = isinstance(spec, str) and (spec in _BY_NAME or spec.startswith(_REGEX))
    return [tokenizer_name(spec)] if ours else [tokenizer_name(spec), fingerprint(_users(spec))]


def tokenize(tokenizer: Tokenizer, url: str, data: bytes) -> Text | Tokens:
    """Call a tokenizer on text of a file.

    Raises
    ------
    InputError
        If a user's function fails, with whatever exception: another try would end the same.
    """
    try:
        return tokenizer(data)
    except (Daskw2vError, MemoryError):
        raise
    except Exception as error:
        raise InputError(
            f"The tokenizer {tokenizer} failed on text of {url} ({type(error).__name__}: {error}).",
            "Repair the function, or the text.",
        ) from error


def _users(spec: str | LineFunction) -> LineFunction:
    """Return the function that the user names or gives."""
    if not isinstance(spec, str):
        return spec
    module, _, name = spec.partition(":")
    if module and name:
        return _imported(module, name)
    raise ParameterError(
        f"tokenizer={spec!r} is unknown.",
        f"Give {', '.join(_BY_NAME)}, regex:PATTERN, package.module:function or a function.",
    )


def _lower(data: bytes) -> Text:
    return Text(data.lower() if data.isascii() else data.decode().lower().encode())


def _normalize(data: bytes) -> Text:
    if data.isascii():
        return Text(_words_only(np.frombuffer(data.lower(), np.uint8)).astype(np.uint8).tobytes())
    text = unicodedata.normalize("NFKC", data.decode()).lower()
    codes = np.frombuffer(text.encode("utf-32-le"), np.uint32)
    return Text(_words_only(codes).tobytes().decode("utf-32-le").encode())


def _words_only(codes: NDArray[np.uint8] | NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Put spaces for all characters (n,) but those of words and newlines."""
    written, of_words = _characters()
    result, in_word = written[codes], of_words[codes]
    lonely = np.isin(result, _JOINERS)
    lonely[1:-1] &= ~(in_word[:-2] & in_word[2:])
    result[lonely] = ord(" ")
    return result


@cache
def _characters() -> tuple[NDArray[np.uint32], NDArray[np.bool_]]:
    """Return what is written for each code point, and whether it is a letter, mark or number."""
    categories = "".join(unicodedata.category(chr(code))[0] for code in range(sys.maxunicode + 1))
    of_words = np.isin(np.frombuffer(categories.encode(), np.uint8), np.frombuffer(b"LMN", np.uint8))
    written = np.where(of_words, np.arange(len(of_words), dtype=np.uint32), np.uint32(ord(" ")))
    for character, becomes in {"\n": "\n", "'": "'", "\u2019": "'", "-": "-", "\u2010": "-"}.items():
        written[ord(character)] = ord(becomes)
    return written, of_words


@dataclass(frozen=True)
class _Pattern:
    pattern: re.Pattern[str]

    def __call__(self, lines: list[str]) -> list[list[str]]:
        return [[match[0] for match in self.pattern.finditer(line)] for line in lines]


@dataclass(frozen=True)
class _Function:
    """Tokens by a function over lines, whose answer is checked: it is the user's."""

    name: str
    function: LineFunction

    def __str__(self) -> str:
        return self.name

    def __call__(self, data: bytes) -> Tokens:
        lines = data.decode().replace("\r\n", "\n").removesuffix("\n").split("\n")
        sentences = self.function(lines)
        if not isinstance(sentences, list) or len(sentences) != len(lines):
            found = f"{len(sentences)}" if isinstance(sentences, list) else f"a {type(sentences).__name__}"
            self._refuse(f"{found} for {counted(len(lines), 'line')}")
        for sentence in sentences:
            if not isinstance(sentence, list | tuple):
                self._refuse(f"a {type(sentence).__name__} for a line")
            if not all(isinstance(token, str) for token in sentence):
                self._refuse("tokens that are no strings")
        try:
            return tokens_of(sentences)
        except UnicodeEncodeError as error:
            self._refuse(f"a token that is no Unicode text ({error})")

    def _refuse(self, found: str) -> NoReturn:
        raise ParameterError(
            f"The tokenizer {self} returned {found}.",
            "It must return a list with one list of strings for each line it is given.",
        )


def _compiled(pattern: str) -> re.Pattern[str]:
    if not pattern:
        raise ParameterError("tokenizer='regex:' has no pattern.", "Give one, such as regex:[a-z]+.")
    try:
        return re.compile(pattern)
    except re.error as error:
        raise ParameterError(
            f"The tokenizer's pattern {pattern!r} is invalid ({error}).", "Give a pattern of Python's re."
        ) from error


def _imported(module: str, name: str) -> LineFunction:
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise ParameterError(
            f"The tokenizer {module}:{name} cannot be imported ({error}).",
            "Give package.module:function of something that is installed here and on all workers.",
        ) from error
    if not callable(found):
        raise ParameterError(f"The tokenizer {module}:{name} is a {type(found).__name__}.", "Name a function.")
    function: LineFunction = found
    return function


_BY_NAME: dict[str, Tokenizer] = {"whitespace": Text, "lower": _lower, "normalize": _normalize}
