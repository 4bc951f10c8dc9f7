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
    """A tokenizer of a work directory, called with lines: workers load it when they first call it.

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
        """Return the tokens of each line; special ones, as of a sentence's begin, are not added."""
        return [encoding.tokens for encoding in _loaded(self).encode_batch(lines, add_special_tokens=False)]


@lru_cache(maxsize=1)  # a worker reads one text at a time
def _loaded(stored: StoredTokenizer) -> Any:
    return load_tokenizer(read_stored(stored.work, stored.name), stored.name)


def is_settled_file(tokenizer: Any) -> bool:
    """Tell whether a tokenizer is a name of settled Params for one of Hugging Face."""
    place, content = split_content(str(tokenizer))
    return place == TOKENIZER_FILE and bool(content)


def stored_tokenizer(params: Params, work: Store) -> Any:
    """Return the tokenizer of settled Params as workers call it: from the work directory if it is stored there."""
    return StoredTokenizer(work, str(params.tokenizer)) if is_settled_file(params.tokenizer) else params.tokenizer


def load_tokenizer(content: bytes, shown: str) -> Any:
    """Return a tokenizer that cuts nothing off and adds nothing; raises `InputError` if the JSON is of none."""
    package = needed("tokenizers", "tokenizers")
    try:
        tokenizer = package.Tokenizer.from_str(content.decode())
    except Exception as error:  # of no class of its own
        raise InputError(
            f"The tokenizer {shown} cannot be read ({str(error)[:200]}).", "Give a tokenizer.json of Hugging Face."
        ) from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def store_tokenizer(work: Store, content: bytes) -> str:
    """Write the JSON of a tokenizer to the work directory, unless it is there; return its name in settled Params."""
    name = _name(content)
    home = _home(work, name)

    def write(folder: Store) -> dict[str, Any]:
        write_json(folder.create_group(), content)
        return {"attempt": folder.name}

    run_once(home, home.read_manifest, write)
    return name


def write_json(group: Any, content: bytes) -> None:
    """Write the JSON of a tokenizer to a group."""
    write_array(group, _ARRAY, np.frombuffer(content, np.uint8))


def read_tokenizer(group: Any, name: str, url: str) -> bytes:
    """Return the JSON that `write_json` wrote to the group at a URL; raises `DamageError` if its name is another."""
    content = read_array(group, _ARRAY).tobytes()
    if _name(content) != name:
        raise DamageError.of(f"{url}/{_ARRAY}", f"is not {name}")
    return content


def read_stored(work: Store, name: str) -> bytes:
    """Return the JSON of a tokenizer in the work directory.

    Raises
    ------
    InputError
        If it is not there.
    DamageError
        If it is damaged.
    """
    home = _home(work, name)
    manifest = home.read_manifest()
    if manifest is None:
        raise InputError(f"The tokenizer {name} is not in {work.url}.", "Give its file, tokenizer.json.")
    place = home / str(manifest["attempt"])
    return read_tokenizer(place.open_group(), name, place.url)


def _home(work: Store, name: str) -> Store:
    return work / LAYOUT.folder / split_content(name)[1]


def _name(content: bytes) -> str:
    return f"{TOKENIZER_FILE}#{hashlib.blake2b(content, digest_size=10).hexdigest()}"
