"""Values of `Params.tokenizer`: a name, a pattern, a function, or a tokenizer of Hugging Face."""

import os
import sys
from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

from daskw2v.config.settings import Constraint, absolute_location, split_content

TOKENIZER_FILE = "tokenizer.json"  # and the digest of its content: a tokenizer of Hugging Face in settled Params
REGEX = "regex:"


def is_tokenizer_file(tokenizer: Any) -> bool:
    """Return whether a value names a file of Hugging Face's tokenizers, or one that is in the work directory."""
    if isinstance(tokenizer, os.PathLike):
        return True
    is_name = isinstance(tokenizer, str) and not tokenizer.startswith(REGEX)
    return is_name and split_content(tokenizer)[0].endswith(".json")


@dataclass(frozen=True)
class TokenizerJSON:
    """The content of a tokenizer of Hugging Face that was passed as an object."""

    content: str = field(repr=False)


def _backend_of(tokenizer: Any) -> Any:
    """Return the object of the package tokenizers that a value is, or holds as those of transformers; or None."""
    backend = getattr(tokenizer, "backend_tokenizer", tokenizer)
    methods = (getattr(type(backend), name, None) for name in ("to_str", "encode_batch"))
    return backend if all(map(callable, methods)) else None


def tokenizer_name(tokenizer: Any) -> str:
    """Return the text that stands for a tokenizer: module:function for a function."""
    if isinstance(tokenizer, TokenizerJSON):
        return repr(tokenizer)
    return tokenizer if isinstance(tokenizer, str) else f"{tokenizer.__module__}:{tokenizer.__qualname__}"


def _is_tokenizer(value: Any) -> bool:
    if isinstance(value, str):
        return bool(value)
    is_content = isinstance(value, os.PathLike | TokenizerJSON) or _backend_of(value) is not None
    return is_content or (callable(value) and _is_importable(value))


def _is_importable(function: Any) -> bool:
    """Return whether a module holds this very object under its own name: only then the name stands for it."""
    module, path = (getattr(function, name, None) for name in ("__module__", "__qualname__"))
    if not (isinstance(module, str) and isinstance(path, str) and isinstance(function, Hashable)):
        return False
    found = reduce(lambda holder, name: getattr(holder, name, None), path.split("."), sys.modules.get(module))
    return found is function


def _converted(value: Any) -> Any:
    """Return the content of an object, and a path as workers find it."""
    if (backend := _backend_of(value)) is not None:
        return TokenizerJSON(backend.to_str())
    is_place = is_tokenizer_file(value) and not split_content(os.fspath(value))[1]
    return absolute_location(value) if is_place else value


TOKENIZER = Constraint(
    _is_tokenizer,
    "a tokenizer's name, regex:PATTERN, package.module:function, a function that a module holds under its name (no "
    "lambda, local function, partial, method or object: write a function in a module), or a tokenizer of Hugging Face: "
    "the name of a .json file, or an object",
    _converted,
)
