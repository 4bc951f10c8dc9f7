"""Tokenizers of Hugging Face in a work directory, where workers read them. Settled Params name one by its content."""

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from daskw2v.config.params import Params
from daskw2v.config.settings import split_content
from daskw2v.config.tokenizers import TOKENIZER_FILE
from daskw2v.errors import DamageError, InputError
from daskw2v.extras import needed
from daskw2v.store.arrays import read_array, write_array
from daskw2v.store.stage import Layout, run_once
from daskw2v.store.storage import Store

LAYOUT = Layout("tokenizers/<tokenizer>")
_ARRAY = "json"


@dataclass(frozen=True)
class StoredTokenizer:
    """A tokenizer of Hugging Face in a work directory, called with lines; workers load it when they first call it.

    Parameters
    ----------
    work
        The work directory.
    name
        The tokenizer's name in settled Params.
    """

    work: Store
    name: str

    def __str__(self) -> str:
        return self.name

    def __call__(self, lines: list[str]) -> list[list[str]]:
        """Return the tokens of each line; special tokens, such as one for the begin of a sentence, are not added."""
        return [encoding.tokens for encoding in _load(self).encode_batch(lines, add_special_tokens=False)]


@lru_cache(maxsize=1)  # a worker reads one text at a time
def _load(stored: StoredTokenizer) -> Any:
    """Return the tokenizer, of the package tokenizers, that is stored."""
    return load_tokenizer(read_stored(stored.work, stored.name), stored.name)


def is_settled_file(tokenizer: Any) -> bool:
    """Return whether the tokenizer of Params is the name of a tokenizer of Hugging Face in settled Params."""
    location, content = split_content(str(tokenizer))
    return location == TOKENIZER_FILE and bool(content)


def stored_tokenizer(params: Params, work: Store) -> Any:
    """Return the tokenizer of settled Params as `make_tokenizer` takes it: a `StoredTokenizer` if it is stored."""
    return StoredTokenizer(work, str(params.tokenizer)) if is_settled_file(params.tokenizer) else params.tokenizer


def load_tokenizer(content: bytes, shown: str) -> Any:
    """Return the tokenizer, of the package tokenizers, that JSON describes, but without truncation and padding.

    Parameters
    ----------
    content
        The JSON of the tokenizer.
    shown
        Name of the tokenizer, for messages.

    Raises
    ------
    InputError
        If the JSON describes no tokenizer.
    MissingExtraError
        If the package tokenizers is not installed.
    """
    package = needed("tokenizers", "tokenizers")
    try:
        tokenizer = package.Tokenizer.from_str(content.decode())
    except Exception as error:  # the package has no class of errors
        problem = f"The tokenizer {shown} cannot be read ({str(error)[:200]})."
        raise InputError(problem, "Give a tokenizer.json of Hugging Face.") from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def store_tokenizer(work: Store, content: bytes) -> str:
    """Write the JSON of a tokenizer to the work directory, unless it exists; return its name in settled Params."""
    name = _name_by_content(content)
    folder = _tokenizer_folder(work, name)

    def write(attempt: Store) -> dict[str, Any]:
        """Write the JSON into the folder of an attempt; return the manifest."""
        write_json(attempt.create_group(), content)
        return {"attempt": attempt.name}

    run_once(folder, folder.read_manifest, write)
    return name


def write_json(group: Any, content: bytes) -> None:
    """Write the JSON of a tokenizer to a Zarr group, as an array of uint8."""
    write_array(group, _ARRAY, np.frombuffer(content, np.uint8))


def read_tokenizer(group: Any, name: str, url: str) -> bytes:
    """Return the JSON of a tokenizer that `write_json` wrote to a Zarr group.

    Parameters
    ----------
    group, url
        The group, and its URL for messages.
    name
        The tokenizer's name in settled Params.

    Raises
    ------
    DamageError
        If the content has another digest than the name.
    """
    content = read_array(group, _ARRAY).tobytes()
    if _name_by_content(content) != name:
        raise DamageError.of(f"{url}/{_ARRAY}", f"is not {name}")
    return content


def read_stored(work: Store, name: str) -> bytes:
    """Return the JSON of the tokenizer with a name in the work directory.

    Raises
    ------
    InputError
        If the work directory has no such tokenizer.
    DamageError
        If the JSON is damaged.
    """
    folder = _tokenizer_folder(work, name)
    manifest = folder.read_manifest()
    if manifest is None:
        raise InputError(f"The tokenizer {name} is not in {work.url}.", "Give its file, tokenizer.json.")
    attempt = folder / str(manifest["attempt"])
    return read_tokenizer(attempt.open_group(), name, attempt.url)


def _tokenizer_folder(work: Store, name: str) -> Store:
    """Return the folder of the tokenizer with a name in settled Params, in a work directory."""
    return work / LAYOUT.folder / split_content(name)[1]


def _name_by_content(content: bytes) -> str:
    """Return the name, in settled Params, of the tokenizer that JSON describes: a digest of the JSON."""
    return f"{TOKENIZER_FILE}#{hashlib.blake2b(content, digest_size=10).hexdigest()}"
