"""`BaseVectors`: initial rows from vectors that are no version of the work directory.

Models of daskw2v are read in their own folder. Files of other tools, and vectors in memory, are stored once in the work
directory, so that workers read only the rows that they need. Settled Params name the location and the digest of the
content, which is called the content here.
"""

import hashlib
from typing import Any

import numpy as np

from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.config.settings import split_content
from daskw2v.corpus.files import get_version
from daskw2v.errors import InputError, ParameterError, counted
from daskw2v.models.formats.importing import import_vectors
from daskw2v.models.formats.keyed_vectors import from_gensim
from daskw2v.models.queries.vectors import Vectors
from daskw2v.models.stored.store import read_attempt, read_finished
from daskw2v.models.stored.tables import open_table
from daskw2v.models.versions.resolving import resolve
from daskw2v.progress import Listener, Progress, message_sender
from daskw2v.store.durability import force_files
from daskw2v.store.lease import hold
from daskw2v.store.retries import with_retries
from daskw2v.store.stage import Layout
from daskw2v.store.storage import Store
from daskw2v.store.urls import filesystem
from daskw2v.training.start.base_settings import BaseVectors, get_frozen_words
from daskw2v.vocabulary.word_lists import read_list

LAYOUT = Layout("base/<vectors>")
_KNOWN = "known"
_ROWS = 1 << 16  # rows of features that are read at once


def with_base_vectors(params: Params, work: Store, resources: Resources, listener: Listener) -> Params:
    """Return Params that name their base vectors, and their list of frozen words, by location and content.

    Vectors that are not in the folder of a model are stored in the work directory.

    Raises
    ------
    ParameterError
        If the vectors have another number of dimensions than `vector_size`.
    InputError, StoreError
        If the vectors or the list cannot be read.
    """
    params = _with_settled_vectors(params, work, listener)
    location = get_frozen_words(params)
    if location in (None, _KNOWN) or split_content(str(location))[1]:
        return params
    words = read_list(str(location), resources, report=message_sender(listener, "base", "words"))
    return params.replace(frozen_words=f"{location}#{_digest('words', *words)}")


def frozen_list(frozen_words: str, resources: Resources) -> list[str] | None:
    """Return the words of the list that `frozen_words` of settled Params names; None if it is "known".

    Raises
    ------
    InputError
        If the list has changed since the Params were settled.
    """
    if frozen_words == _KNOWN:
        return None
    url, content = split_content(frozen_words)
    words = read_list(url, resources)
    if _digest("words", *words) != content:
        raise InputError(f"The list of words {url} has changed since the run began.", "Run again.")
    return words


def _with_settled_vectors(params: Params, work: Store, listener: Listener) -> Params:
    """Return Params that name their base vectors by location, or type if in memory, and content; store the vectors."""
    base = BaseVectors.find(params)
    if base is None:
        return params
    source = base.vectors
    name, content, model = (
        _store_memory(source, work, listener) or _find_settled(source, work) or _open_location(source, work, listener)
    )
    width = open_table(model, "input").shape[1]
    if width != params.vector_size:
        raise ParameterError(
            f"base_vectors={name!r} has {counted(width, 'dimension')}, not vector_size={params.vector_size}.",
            f"Give vector_size={width}, or leave base_vectors out.",
        )
    return params.replace(base_vectors=f"{name}#{content}")


def find_base_vectors(work: Store, params: Params) -> Store:
    """Return the folder of the model with the base vectors that settled Params name."""
    url, content = split_content(str(BaseVectors.of(params).vectors))
    stored = work / LAYOUT.folder / content
    return stored if stored.exists() else Store(url, work.options, work.timeout)


def _store_memory(value: Any, work: Store, listener: Listener) -> tuple[str, str, Store] | None:
    """Store vectors in memory as a model; return their type's name, content and model. Return None for a location."""
    if isinstance(value, str):
        return None
    vectors = value if isinstance(value, Vectors) else from_gensim(value)
    content = _digest_vectors(vectors)
    return type(value).__name__, content, _store(vectors, content, work, listener)


def _find_settled(name: str, work: Store) -> tuple[str, str, Store] | None:
    """Return location, content and model for a settled name; None for other names, or if there is no such model."""
    url, content = split_content(name)
    if not content:
        return None
    models = (work / LAYOUT.folder / content, Store(url, work.options, work.timeout))
    return next(((url, content, model) for model in models if read_finished(model) is not None), None)


def _open_location(name: str, work: Store, listener: Listener) -> tuple[str, str, Store]:
    """Return location and content of a model of daskw2v, or of a file, and the model that has its vectors.

    Raises
    ------
    InputError
        If nothing lies at the location, or the name has a content which is not the vectors'.
    """
    url, expected = split_content(name)
    fs, path = filesystem(url, work.options)
    try:
        info = with_retries(fs.info, path, location=url, timeout=work.timeout)
    except FileNotFoundError as error:
        raise InputError(
            f"base_vectors={url!r} does not exist.", "Give a file, a model, or a work directory with one."
        ) from error
    if info["type"] == "directory":
        model = resolve(url, work.options, work.timeout)
        location, content = model.url, _digest("model", read_attempt(model))
    else:
        model, location, content = None, url, _digest("file", url, str(info.get("size")), get_version(info))
    if expected and expected != content:
        raise InputError(f"base_vectors={url!r} has changed since.", "Give base_vectors anew, or the vectors as then.")
    return location, content, _store(url, content, work, listener) if model is None else model


def _store(source: str | Vectors, content: str, work: Store, listener: Listener) -> Store:
    """Return the model in the work directory that has vectors of this content; write it if it does not exist."""
    model = work / LAYOUT.folder / content
    if read_finished(model) is None:
        with hold(work, content, model.url, waiting=message_sender(listener, "base", "words")) as lease:
            if read_finished(model) is None:
                vectors = import_vectors(source, None, work.options) if isinstance(source, str) else source
                listener(Progress("base", 0, len(vectors), "words", message=f"storing {source}"[:200]))
                vectors.write_to(lease.guard(model))
                force_files()
    return model


def _digest(*parts: str) -> str:
    """Return the digest of texts, 20 hex digits."""
    return hashlib.blake2b(repr(parts).encode(), digest_size=10).hexdigest()


def _digest_vectors(vectors: Vectors) -> str:
    """Return the digest of words, rows and features of vectors."""
    digest = hashlib.blake2b(vectors.vocabulary.data.tobytes() + vectors.vocabulary.offsets.tobytes(), digest_size=10)
    for ids in vectors.slices():
        digest.update(vectors.rows(ids).tobytes())
    if vectors.features is not None:  # rows of n-grams begin with the rows of these
        keys = vectors.features.keys
        digest.update(repr((keys.columns, keys.ngrams)).encode() + keys.buckets.tobytes())
        for start in range(0, len(keys), _ROWS):
            digest.update(np.asarray(vectors.features.rows[start : start + _ROWS]).tobytes())
    return digest.hexdigest()
