"""Tables of the user that Params name: settled Params name them by location and content, which workers then check."""

from collections.abc import Sequence

from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.config.settings import place_of
from daskw2v.corpus.files import Source
from daskw2v.corpus.sources import find_sources
from daskw2v.errors import InputError
from daskw2v.shards.layout import digest
from daskw2v.store.urls import make_absolute


def is_settled(named: str) -> bool:
    """Return whether the name of a table ends with its content."""
    return bool(place_of(named)[1])


def without_contents(params: Params) -> Params:
    """Return settled Params whose tables are named by location alone: the tables grow from night to night."""
    named = {name: value for name, value in params.flat().items() if name in ("markets", "features") and value}
    return params.replace(**{name: place_of(value)[0] for name, value in named.items()})


def find_table(location: str, resources: Resources) -> tuple[str, list[Source]]:
    """Return the settled name of a table at a location, and its files.

    Raises
    ------
    InputError, StoreError
        If it cannot be found.
    """
    url = make_absolute(location)
    sources = _find(url, resources)
    return f"{url}#{_content(sources)}", sources


def open_table(named: str, resources: Resources, kind: str) -> list[Source]:
    """Return the files of a table that settled Params name.

    Raises
    ------
    InputError
        If it has changed since.
    """
    url, content = place_of(named)
    sources = _find(url, resources)
    if _content(sources) != content:
        raise InputError(f"The table of {kind} {url} has changed since the run began.", "Run again.")
    return sources


def _find(url: str, resources: Resources) -> list[Source]:
    return find_sources(url, None, resources.storage_options, resources.store_timeout)


def _content(sources: Sequence[Source]) -> str:
    return digest([[source.url, source.size, source.version] for source in sources])
