"""Opens vectors wherever they are: trained models, files of other tools, and the Hugging Face Hub."""

import os
import re
from collections.abc import Mapping
from typing import Any

from daskw2v.errors import InputError, MissingExtraError, ParameterError, StoreError
from daskw2v.models.formats.export import format_by_name
from daskw2v.models.formats.importing import import_vectors
from daskw2v.models.queries.vectors import Vectors
from daskw2v.store.retries import TIMEOUT
from daskw2v.store.urls import Location, as_url, filesystem, make_absolute

_REPOSITORY = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*")  # OWNER/NAME
_HUB = "hf://"
# Formats that `export` writes and `open` does not read, and the code that reads them
_UNREAD_FORMATS = {
    "parquet": "pandas.read_parquet(url), and Vectors(table['word'], numpy.stack(table['vector']))",
    "faiss": "faiss.read_index(url), and Vectors(words, index.reconstruct_n()), whose words are in <url>.words",
    "lance": "lance.dataset(url).to_table(), and Vectors of its columns word and vector",
}


def open(
    url: Location,
    storage_options: Mapping[str, Any] | None = None,
    in_memory: bool | None = None,
    store_timeout: float = TIMEOUT,
    version: str | None = None,
) -> Vectors:
    """Open vectors: a trained model, a file of another tool, or a model of the Hugging Face Hub.

    Parameters
    ----------
    url
        A work directory or its `models` folder (the served version is read), one version, or a folder that
        `Vectors.save` wrote; a file of word2vec, fastText or safetensors, as `import_vectors` reads it; or a model that
        `Vectors.push_to_hub` uploaded, `hf://OWNER/NAME`, or OWNER/NAME if there is no such folder here.
    storage_options
        Options for fsspec.
    in_memory
        Whether all vectors are loaded into memory; None loads the vectors of a small model, as `Vectors.open` says. A
        file of another tool always is loaded.
    store_timeout
        Seconds to wait for each answer of the store, as in `Resources`.
    version
        Name or tag of a version of the work directory, instead of the served one.

    Returns
    -------
    Vectors
        The vectors. `IndexedVectors.open` opens a model with its index.

    Raises
    ------
    StoreError
        If there is no finished model, it is damaged, or a newer daskw2v wrote it.
    VocabularyError
        If its vocabulary is damaged.
    InputError
        If a file cannot be read, or daskw2v does not read its format: the message names the function to use.
    ParameterError
        If `in_memory=False` or a version is asked of a file, or `storage_options` is no mapping.
    MissingExtraError
        If the URL needs a package that is not installed, such as huggingface_hub.

    Examples
    --------
    >>> import daskw2v
    >>> vectors = daskw2v.Vectors(["king", "queen"], [[3, 1], [2, 2]])
    >>> vectors.save("memory://opened/model")
    >>> daskw2v.open("memory://opened/model")
    Vectors(2 words x 2, url='memory://opened/model')
    """
    url = as_url(url, "model")
    if not isinstance(storage_options, Mapping | None):
        raise ParameterError(
            f"storage_options must be a mapping, not a {type(storage_options).__name__}.",
            "Give options of fsspec, such as {'anon': True}. daskw2v.open opens vectors; Python's own open, which "
            "`from daskw2v import *` hides, is builtins.open.",
        )
    fs, path = filesystem(make_absolute(url), storage_options or {})
    if fs.isfile(path):
        return _import_file(url, storage_options, in_memory, version)
    if not _REPOSITORY.fullmatch(url) or os.path.exists(make_absolute(url)):
        return Vectors.open(url, storage_options, in_memory, store_timeout, version)
    try:
        return Vectors.open(_HUB + url, storage_options, in_memory, store_timeout, version)
    except MissingExtraError as error:
        raise MissingExtraError(
            f"There is no folder {url}, and the Hugging Face Hub needs huggingface_hub, which is not installed.",
            "Give a folder that exists; or, for the model of that name on the Hub, run: pip install 'daskw2v[hub]'.",
        ) from error
    except StoreError as error:
        raise StoreError(f"There is no folder {url}; of the Hub: {error.problem}", error.remedy) from error


def _import_file(
    url: str, storage_options: Mapping[str, Any] | None, in_memory: bool | None, version: str | None
) -> Vectors:
    """Read vectors from a file of another tool; raise errors for options that only stored models have."""
    format = format_by_name(url)
    if format in _UNREAD_FORMATS:
        raise InputError(f"{url} is a file in the format {format}.", f"Read it by {_UNREAD_FORMATS[format]}.")
    if in_memory is False or version is not None:
        option = "in_memory=False" if version is None else f"version={version!r}"
        problem = f"{option}: {url} is a file of another tool, which is read as a whole."
        raise ParameterError(problem, "Leave it out, or save a model.")
    return import_vectors(url, storage_options=storage_options)
