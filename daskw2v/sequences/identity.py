"""Identities of results that are built from files."""

from collections.abc import Mapping, Sequence
from typing import Any

from daskw2v.corpus.files import Source
from daskw2v.shards.layout import digest


def identity_of(sources: Sequence[Source], described: Mapping[str, Any], *options: Any) -> str:
    """Return a digest of the contents of files and of how they are read: settings by name, and other values."""
    contents = [[source.url, source.size, source.version, source.format] for source in sources]
    return digest([contents, described, *options])
