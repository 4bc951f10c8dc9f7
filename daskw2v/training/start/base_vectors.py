"""`BaseVectors`: initial rows that no version of the work directory has.

Models of daskw2v are read where they lie. Files of other tools, and vectors in memory, are stored once in the work
directory, so that workers read the rows that they need, and no more. Settled Params name location and content.
"""

import hashlib
from typing import Any

import numpy as np

from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.config.settings import place_of
from daskw2v.corpus.files import version_of
from daskw2v.errors import InputError, ParameterError, counted
from daskw2v.models.formats.importing import import_vectors
from daskw2v.models.formats.keyed_vectors import from_gensim
from daskw2v.models.queries.vectors import Vectors
from daskw2v.models.stored.store import read_attempt, read_finished
from daskw2v.models.stored.tables import open_table
from daskw2v.models.versions.resolving import resolve
from daskw2v.progress import Listener, Progress, saying
from daskw2v.store.durability import force_files
from daskw2v.store.lease import hold
from daskw2v.store.retries import with_retries
from daskw2v.store.stage import Layout
from daskw2v.store.storage import Store
from daskw2v.store.urls import filesystem
from daskw2v.training.start.base_settings import BaseVectors, frozen_words_of
from daskw2v.vocabulary.word_lists import read_list

LAYOUT = Layout("base/<vectors>")
_KNOWN = "known"
_ROWS = 1 << 16  # of features that are read at once


def with_base_vectors(params: Params, work: Store, resources: Resources, listener: Listener) -> Params:
    """Return Params whose base vectors, and list of frozen words, are named by location and content.

    Raises
    ------
    ParameterError
        If the vectors have another number of dimensions than `vector_size`.
    InputError, StoreError
        If vectors or list cannot be read.
    """
    params = _with_vectors(params, work, listener)
    named = frozen_words_of(params)
    if named in (None, _KNOWN) or place_of(str(named))[1]:
        return params
    words = read_list(str(named), resources, say=saying(listener, "base", "words"))
    return params.replace(frozen_words=f"{named}#{_digest('words', *words)}")


def frozen_list(frozen_words: str, resources: Resources) -> list[str] | None:
    """Return the words that settled Params list; None if all that the base knows are frozen.

    Raises
    ------
    InputError
        If the list has changed since.
    """
    if frozen_words == _KNOWN:
        return None
    url, content = place_of(frozen_words)
    words = read_list(url, resources)
    if _digest("words", *words) != content:
        raise InputError(f"The list of words {url} has changed since the run began.", "Run again.")
    return words


def _with_vectors(params: Params, work: Store, listener: Listener) -> Params:
    """Return Params whose base vectors are named by location and content, where workers can read them."""
    base = BaseVectors.find(params)
    if base is None:
        return params
    source = base.vectors
    name, content, model = _in_memory(source, work, listener) or _settled(source, work) or _at(source, work, listener)
    width = open_table(model, "input").shape[1]
    if width != params.vector_size:
        raise ParameterError(
            f"base_vectors={name!r} has {counted(width, 'dimension')}, not vector_size={params.vector_size}.",
            f"Give vector_size={width}, or leave base_vectors out.",
        )
    return params.replace(base_vectors=f"{name}#{content}")


def find_base_vectors(work: Store, params: Params) -> Store:
    """Return the model that settled Params name."""
    url, content = place_of(str(BaseVectors.of(params).vectors))
    stored = work / LAYOUT.folder / content
    return stored if stored.exists() else Store(url, work.options, work.timeout)


def _in_memory(value: Any, work: Store, listener: Listener) -> tuple[str, str, Store] | None:
    """Return type and content of vectors in memory, and the model that stores them; None for a location."""
    if isinstance(value, str):
        return None
    vectors = value if isinstance(value, Vectors) else from_gensim(value)
    content = _digest_of(vectors)
    return type(value).__name__, content, _stored(vectors, content, work, listener)


def _settled(name: str, work: Store) -> tuple[str, str, Store] | None:
    """Return location, content and model that settled Params name, if the model is there."""
    url, content = place_of(name)
    if not content:
        return None
    models = (work / LAYOUT.folder / content, Store(url, work.options, work.timeout))
    return next(((url, content, model) for model in models if read_finished(model) is not None), None)


def _at(name: str, work: Store, listener: Listener) -> tuple[str, str, Store]:
    """Return location and content of a model of daskw2v, or a file, and the model that has its vectors.

    Where Params name a content, too, it must be that of the vectors.
    """
    url, before = place_of(name)
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
        model, location, content = None, url, _digest("file", url, str(info.get("size")), version_of(info))
    if before and before != content:
        raise InputError(f"base_vectors={url!r} has changed since.", "Give base_vectors anew, or the vectors as then.")
    return location, content, _stored(url, content, work, listener) if model is None else model


def _stored(source: str | Vectors, content: str, work: Store, listener: Listener) -> Store:
    """Return the model of the work directory that has the vectors, written if it is not there."""
    model = work / LAYOUT.folder / content
    if read_finished(model) is None:
        with hold(work, content, model.url, waiting=saying(listener, "base", "words")) as lease:
            if read_finished(model) is None:
                vectors = import_vectors(source, None, work.options) if isinstance(source, str) else source
                listener(Progress("base", 0, len(vectors), "words", message=f"storing {source}"[:200]))
                vectors.write_to(lease.guard(model))
                force_files()
    return model


def _digest(*parts: str) -> str:
    return hashlib.blake2b(repr(parts).encode(), digest_size=10).hexdigest()


def _digest_of(vectors: Vectors) -> str:
    digest = hashlib.blake2b(vectors.vocabulary.data.tobytes() + vectors.vocabulary.offsets.tobytes(), digest_size=10)
    for ids in vectors.slices():
        digest.update(vectors.rows(ids).tobytes())
    if vectors.features is not None:  # rows of n-grams begin with theirs
        keys = vectors.features.keys
        digest.update(repr((keys.columns, keys.ngrams)).encode() + keys.buckets.tobytes())
        for start in range(0, len(keys), _ROWS):
            digest.update(np.asarray(vectors.features.rows[start : start + _ROWS]).tobytes())
    return digest.hexdigest()
