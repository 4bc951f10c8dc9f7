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
    """Return whether a value is the path of a Hugging Face tokenizer's file, or its name in settled Params."""
    if isinstance(tokenizer, os.PathLike):
        return True
    is_name = isinstance(tokenizer, str) and not tokenizer.startswith(REGEX)
    return is_name and split_content(tokenizer)[0].endswith(".json")


@dataclass(frozen=True)
class TokenizerJSON:
    """The content of a tokenizer of Hugging Face that was passed as an object."""

    content: str = field(repr=False)


def _find_backend(tokenizer: Any) -> Any:
    """Return the tokenizer of the package tokenizers that a value is, or holds as those of transformers; or None."""
    backend = getattr(tokenizer, "backend_tokenizer", tokenizer)
    methods = (getattr(type(backend), name, None) for name in ("to_str", "encode_batch"))
    return backend if all(map(callable, methods)) else None


def tokenizer_name(tokenizer: Any) -> str:
    """Return the text that names a tokenizer in settings: itself for text, module:function for a function.

    A `TokenizerJSON` has no name of its own: the text is the same for all contents.
    """
    if isinstance(tokenizer, TokenizerJSON):
        return repr(tokenizer)
    return tokenizer if isinstance(tokenizer, str) else f"{tokenizer.__module__}:{tokenizer.__qualname__}"


def _is_tokenizer(value: Any) -> bool:
    if isinstance(value, str):
        return bool(value)
    is_content = isinstance(value, os.PathLike | TokenizerJSON) or _find_backend(value) is not None
    return is_content or (callable(value) and _is_importable(value))


def _is_importable(function: Any) -> bool:
    """Return whether a function is hashable, and its module, already imported, holds it under its own name."""
    module, path = (getattr(function, name, None) for name in ("__module__", "__qualname__"))
    if not (isinstance(module, str) and isinstance(path, str) and isinstance(function, Hashable)):
        return False
    imported = reduce(lambda holder, name: getattr(holder, name, None), path.split("."), sys.modules.get(module))
    return imported is function


def _convert(value: Any) -> Any:
    """Return the content of a tokenizer object, the absolute path of a file, and other values unchanged."""
    if (backend := _find_backend(value)) is not None:
        return TokenizerJSON(backend.to_str())
    is_file = is_tokenizer_file(value) and not split_content(os.fspath(value))[1]
    return absolute_location(value) if is_file else value


TOKENIZER = Constraint(
    _is_tokenizer,
    "a tokenizer's name, regex:PATTERN, package.module:function, a function that a module holds under its name (no "
    "lambda, local function, partial, method or object: write a function in a module), or a tokenizer of Hugging Face: "
    "the name of a .json file, or an object",
    _convert,
)
