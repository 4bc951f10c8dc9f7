"""Tables of the user that Params name: settled Params name their location and content, which workers check."""

from collections.abc import Sequence

from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.config.settings import split_content
from daskw2v.corpus.files import Source
from daskw2v.corpus.sources import find_sources
from daskw2v.errors import InputError
from daskw2v.shards.layout import digest
from daskw2v.store.urls import make_absolute


def is_settled(name: str) -> bool:
    """Return whether the name of a table ends with the digest of its content."""
    return bool(split_content(name)[1])


def without_contents(params: Params) -> Params:
    """Return settled Params whose tables of markets and features are named by location alone, as tables may grow."""
    tables = {name: value for name, value in params.flat().items() if name in ("markets", "features") and value}
    return params.replace(**{name: split_content(value)[0] for name, value in tables.items()})


def find_table(location: str, resources: Resources) -> tuple[str, list[Source]]:
    """Return the settled name of the table at a location, its absolute URL, "#" and a digest, and the table's files.

    Raises
    ------
    InputError, StoreError
        If the table cannot be found.
    """
    url = make_absolute(location)
    sources = _find_files(url, resources)
    return f"{url}#{_digest_files(sources)}", sources


def open_table(name: str, resources: Resources, kind: str) -> list[Source]:
    """Return the files of the table of this settled name; `kind` names the table in errors.

    Raises
    ------
    InputError
        If the table has changed since the name was settled.
    """
    url, content = split_content(name)
    sources = _find_files(url, resources)
    if _digest_files(sources) != content:
        raise InputError(f"The table of {kind} {url} has changed since the run began.", "Run again.")
    return sources


def _find_files(url: str, resources: Resources) -> list[Source]:
    """Return the files of a table at a URL."""
    return find_sources(url, None, resources.storage_options, resources.store_timeout)


def _digest_files(sources: Sequence[Source]) -> str:
    """Return the digest of the names, sizes and versions of files."""
    return digest([[source.url, source.size, source.version] for source in sources])
