"""Tokenizers: from text to tokens. A user's function is identified by a fingerprint of its code."""

import hashlib
import importlib
import re
import sys
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from operator import attrgetter
from types import CodeType
from typing import Any, NamedTuple, NoReturn, cast

import numpy as np
from numpy.typing import NDArray

from daskw2v.config.registry import Registry
from daskw2v.config.tokenizers import REGEX, is_tokenizer_file, tokenizer_name
from daskw2v.corpus.matching import matches
from daskw2v.corpus.pieces import Piece, RawText, Tokens, make_tokens
from daskw2v.corpus.stored_tokenizers import StoredTokenizer
from daskw2v.errors import Daskw2vError, InputError, ParameterError, counted

LineFunction = Callable[[list[str]], list[list[str]]]

SPECS = "regex:PATTERN", "package.module:function", "tokenizer.json"  # forms that a spec may have besides a name
_JOINERS = np.frombuffer(b"'-", np.uint8)
_BLANKS = (  # blanks of `str.split` that are not ASCII
    "\x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)
_PLAIN = (str, bytes, int, float, complex, type(None), type(...), slice)


class Steps(NamedTuple):
    """Steps by which the package tokenizers makes the same tokens as a `Tokenizer`.

    Parameters
    ----------
    normalizers
        Normalizers of the package, as in the JSON of a tokenizer.
    tokens
        Pattern of a token; None if bytes <= 0x20 separate tokens.
    """

    normalizers: tuple[dict[str, Any], ...] = ()
    tokens: str | None = None


@dataclass(frozen=True, kw_only=True)
class Tokenizer:
    """A way to make tokens of text.

    Parameters
    ----------
    name
        Value of `tokenizer` in Params.
    title
        Short description for `--help`.
    cut
        Function that turns valid UTF-8, which ends after a line or between two tokens, into text or tokens; workers
        can import it. A plug-in is identified by its name and the code of this function: when either changes, text is
        read again.
    steps
        Steps by which the package tokenizers makes the same tokens, for exported models; None if it cannot.
    version
        Number that grows when a tokenizer of daskw2v makes other tokens than before, so that text is read again.
    """

    name: str
    title: str
    cut: Callable[[bytes], Piece]
    steps: Steps | None = None
    version: int = 1

    def __str__(self) -> str:
        return self.name

    def __call__(self, data: bytes) -> Piece:
        """Return the text or tokens that `cut` makes."""
        return self.cut(data)


def make_tokenizer(spec: str | LineFunction) -> Tokenizer:
    """Return the tokenizer that the value of `tokenizer` in Params stands for.

    Parameters
    ----------
    spec
        - "whitespace": bytes <= 0x20 separate tokens;
        - "lower": in lower case by Unicode's rules; what `str.split` takes for blanks separates tokens;
        - "normalize": NFKC, lower case; keeps only letters, marks and numbers, and apostrophes and hyphens between two
          of these;
        - a name that a plug-in adds;
        - "regex:PATTERN": each match in a line is a token;
        - "package.module:function", or the function itself: takes a list of lines without newlines and returns a list
          of tokens for each;
        - a `StoredTokenizer` of Hugging Face.

    Raises
    ------
    ParameterError
        If the spec is unknown, the pattern is invalid or the function cannot be imported. Calls of the tokenizer raise
        it if the user's function returns anything but a list of lists of strings.
    """
    if _is_name(spec):
        return TOKENIZERS.find(str(spec))
    name = str(spec) if isinstance(spec, StoredTokenizer) else tokenizer_name(spec)
    if isinstance(spec, str) and spec.startswith(REGEX):
        pattern = spec.removeprefix(REGEX)
        _check_pattern(pattern)
        return Tokenizer(name=name, title=f"matches of {pattern}", cut=partial(matches, pattern))
    return Tokenizer(name=name, title=f"what {name} returns", cut=_FunctionTokenizer(name, _find_function(spec)))


def tokenizer_identity(spec: str | LineFunction) -> list[str]:
    """Return the identity of a tokenizer: its name and, for daskw2v's own of a version above 1, the version as text.

    Instead of a version, a user's function or a plug-in has the fingerprint of its code.

    Raises
    ------
    ParameterError
        As `make_tokenizer` does.
    """
    name = tokenizer_name(spec)
    if isinstance(spec, str) and (spec in TOKENIZERS or spec.startswith(REGEX) or is_tokenizer_file(spec)):
        version = TOKENIZERS[spec].version if spec in TOKENIZERS else 1
        return [name] if version == 1 else [name, str(version)]  # a file in settled Params is named by its content
    return [name, fingerprint(TOKENIZERS.find(name).cut if _is_name(spec) else _find_function(spec))]


def steps_of(name: str) -> Steps | None:
    """Return the steps of the tokenizer that a model names, such as "lower" or "regex:PATTERN"; None if it has none.

    Users' functions, which are not imported, and unknown names have none.
    """
    if name.startswith(REGEX):
        return Steps(tokens=name.removeprefix(REGEX))
    tokenizer = TOKENIZERS.known(name)
    return None if tokenizer is None else tokenizer.steps


def tokenize(tokenizer: Tokenizer, url: str, data: bytes) -> Piece:
    """Return the text or tokens that a tokenizer makes of UTF-8 from the file at a URL.

    Raises
    ------
    InputError
        If a pattern takes too long for a line, or a user's function raises any exception: a retry would fail in the
        same way.
    """
    try:
        return tokenizer(data)
    except InputError as error:
        raise InputError(f"{url}: {error.problem}", error.remedy) from error
    except (Daskw2vError, MemoryError):
        raise
    except Exception as error:
        problem = f"The tokenizer {tokenizer} failed on text of {url} ({type(error).__name__}: {error})."
        raise InputError(problem, "Repair the function, or the text.") from error


def is_import_path(spec: str | LineFunction) -> bool:
    """Return whether a spec is a string package.module:function, which names a function of the user."""
    has_colon = isinstance(spec, str) and ":" in spec and not spec.startswith(REGEX)
    return has_colon and not is_tokenizer_file(spec) and not _is_name(spec)


def _is_name(spec: str | LineFunction) -> bool:
    """Return whether a spec is the name of a tokenizer that is built in or added by a plug-in."""
    return isinstance(spec, str) and (spec in TOKENIZERS or TOKENIZERS.is_added(spec))


def _find_function(spec: str | LineFunction) -> LineFunction:
    """Return the user's function that a spec names by package.module:function, or is; raises a ParameterError."""
    if not isinstance(spec, str):
        return spec
    module, _, name = spec.partition(":")
    if module and name:
        return _import_function(module, name)
    problem = f"tokenizer={spec!r} is unknown."
    raise ParameterError(problem, f"Give {', '.join((*TOKENIZERS.names(), *SPECS))} or a function.")


def _lower(data: bytes) -> RawText:
    """Return UTF-8 in lower case, with a space for each blank of `str.split` that is not ASCII."""
    if data.isascii():
        return RawText(data.lower())
    text = data.decode().lower()
    for blank in _BLANKS:  # a scan of a pattern or table takes several times as long
        text = text.replace(blank, " ")
    return RawText(text.encode())


def _normalize(data: bytes) -> RawText:
    """Return UTF-8 in NFKC and lower case, with spaces in place of all but words and newlines."""
    if data.isascii():
        return RawText(_blank_separators(np.frombuffer(data.lower(), np.uint8)).astype(np.uint8).tobytes())
    text = unicodedata.normalize("NFKC", data.decode()).lower()
    codes = np.frombuffer(text.encode("utf-32-le"), np.uint32)
    return RawText(_blank_separators(codes).tobytes().decode("utf-32-le").encode())


def _blank_separators(codes: NDArray[np.uint8] | NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return n code points with spaces in place of all characters but those of words and newlines, shape (n,).

    Apostrophes and hyphens belong to words if they stand between two letters, marks or numbers.
    """
    replacements, is_word_character = _classify_characters()
    result, in_word = replacements[codes], is_word_character[codes]
    is_separator = np.isin(result, _JOINERS)
    is_separator[1:-1] &= ~(in_word[:-2] & in_word[2:])
    result[is_separator] = ord(" ")
    return result


@cache
def _classify_characters() -> tuple[NDArray[np.uint32], NDArray[np.bool_]]:
    """Return the replacement of each code point, and whether it is a letter, mark or number, as two arrays."""
    categories = "".join(unicodedata.category(chr(code))[0] for code in range(sys.maxunicode + 1))
    is_word_character = np.isin(np.frombuffer(categories.encode(), np.uint8), np.frombuffer(b"LMN", np.uint8))
    codes = np.arange(len(is_word_character), dtype=np.uint32)
    replacements = np.where(is_word_character, codes, np.uint32(ord(" ")))
    for character, replacement in {"\n": "\n", "'": "'", "\u2019": "'", "-": "-", "\u2010": "-"}.items():
        replacements[ord(character)] = ord(replacement)
    return replacements, is_word_character


@dataclass(frozen=True)
class _FunctionTokenizer:
    """A tokenizer that calls a user's function on lines, and checks the function's result.

    Parameters
    ----------
    name
        Name of the tokenizer, for messages.
    function
        The user's function.
    """

    name: str
    function: LineFunction

    def __call__(self, data: bytes) -> Tokens:
        """Return the tokens of lines of UTF-8; raises a ParameterError if the function returns anything else."""
        lines = data.decode().replace("\r\n", "\n").removesuffix("\n").split("\n")
        sentences = self.function(lines)
        if not isinstance(sentences, list) or len(sentences) != len(lines):
            returned = f"{len(sentences)}" if isinstance(sentences, list) else f"a {type(sentences).__name__}"
            self._refuse(f"{returned} for {counted(len(lines), 'line')}")
        for sentence in sentences:
            if not isinstance(sentence, list | tuple):
                self._refuse(f"a {type(sentence).__name__} for a line")
            if not all(isinstance(token, str) for token in sentence):
                self._refuse("tokens that are not strings")
        try:
            return make_tokens(sentences)
        except UnicodeEncodeError as error:
            self._refuse(f"a token that is not valid Unicode ({error})")

    def _refuse(self, returned: str) -> NoReturn:
        """Raise the error for a result of the function; `returned` describes the result."""
        problem = f"The tokenizer {self.name} returned {returned}."
        raise ParameterError(problem, "It must return a list with one list of strings for each line it is given.")


def _check_pattern(pattern: str) -> None:
    """Refuse a pattern that is empty, or invalid for Python's `re`, by a ParameterError."""
    if not pattern:
        raise ParameterError("tokenizer='regex:' has no pattern.", "Give one, such as regex:[a-z]+.")
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        problem = f"The tokenizer's pattern {pattern!r} is invalid ({error})."
        raise ParameterError(problem, "Give a pattern of Python's re.") from error


def _import_function(module: str, name: str) -> LineFunction:
    """Return the function of a name in a module; raises a ParameterError if it cannot be imported, or is none."""
    try:
        function: Any = attrgetter(name)(importlib.import_module(module))
    except (ImportError, AttributeError) as error:
        remedy = "Give package.module:function of a package that is installed here and on all workers."
        raise ParameterError(f"The tokenizer {module}:{name} cannot be imported ({error}).", remedy) from error
    if not callable(function):
        raise ParameterError(f"The tokenizer {module}:{name} is a {type(function).__name__}.", "Name a function.")
    return cast(LineFunction, function)


def _replace_step(pattern: dict[str, str], content: str) -> dict[str, Any]:
    """Return the normalizer, of the package tokenizers, that replaces matches of a pattern by `content`."""
    return {"type": "Replace", "pattern": pattern, "content": content}


_LETTERS = r"[\p{L}\p{M}\p{N}]+"
_LOWERCASE, _SPACES = {"type": "Lowercase"}, _replace_step({"Regex": f"[{_BLANKS}]"}, " ")
_ASCII = _replace_step({"String": "\u2019"}, "'"), _replace_step({"String": "\u2010"}, "-")
_LOWERED = Steps((_LOWERCASE, _SPACES))
_NORMALIZED = Steps(({"type": "NFKC"}, _LOWERCASE, *_ASCII), f"{_LETTERS}(?:['-]{_LETTERS})*")
_BUILT_IN = (
    Tokenizer(name="whitespace", title="between blanks", cut=RawText, steps=Steps()),
    Tokenizer(name="lower", title="in lower case, between Unicode's blanks", cut=_lower, steps=_LOWERED, version=2),
    Tokenizer(name="normalize", title="NFKC, lower case, letters and digits only", cut=_normalize, steps=_NORMALIZED),
)
TOKENIZERS = Registry("tokenizer", "daskw2v.tokenizers", Tokenizer, {value.name: value for value in _BUILT_IN})


def fingerprint(function: Callable[..., Any]) -> str:
    """Return a digest of a function's code, 20 hexadecimal digits.

    The digest covers the instructions, constants, names and defaults of the function, of functions defined inside it,
    and of functions that decorators wrap. It does not cover functions that are called, globals that are read, and code
    that is not Python. Another version of Python changes the digest, too.

    Parameters
    ----------
    function
        A function, or an object with `__call__`.
    """
    parts: list[Any] = []
    current: Any = function
    while current is not None:
        code = getattr(current, "__code__", None) or getattr(type(current).__call__, "__code__", None)
        defaults = getattr(current, "__defaults__", None), *(getattr(current, "__kwdefaults__", None) or {}).items()
        parts.append(_describe((code, *defaults)))
        current = getattr(current, "__wrapped__", None)
    return hashlib.blake2b(repr(parts).encode(), digest_size=10).hexdigest()


def _describe(value: Any) -> Any:
    """Return a description of a code object or constant, without addresses and with sorted sets.

    The repr of the description is equal in all processes.
    """
    if isinstance(value, CodeType):
        constants = [_describe(constant) for constant in value.co_consts]
        return value.co_code, value.co_exceptiontable, value.co_names, constants
    if isinstance(value, tuple):
        return [_describe(part) for part in value]
    if isinstance(value, frozenset):
        return sorted(repr(_describe(part)) for part in value)
    return value if isinstance(value, _PLAIN) else type(value).__name__
