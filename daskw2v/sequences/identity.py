"""Identities of results that are built from files."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from daskw2v.corpus.files import Source
from daskw2v.shards.layout import digest


def identity_of(sources: Sequence[Source], options: Any) -> str:
    """Return a digest of the contents of files and of the options, a dataclass, for reading them."""
    contents = [[source.url, source.size, source.version, source.format] for source in sources]
    return digest([contents, asdict(options)])
