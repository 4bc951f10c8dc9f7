"""What is new in the text, since the version that is served was trained."""

from collections.abc import Sequence
from typing import NamedTuple

from daskw2v.corpus.sources import Source


class Changes(NamedTuple):
    """Files that are new, that changed (as they are now), and that are gone (as they were)."""

    new: tuple[Source, ...]
    changed: tuple[Source, ...]
    gone: tuple[Source, ...]

    @property
    def unread(self) -> tuple[Source, ...]:
        """Files whose text no version has seen."""
        return self.new + self.changed

    def figures(self) -> dict[str, float]:
        """Return how many there are of each."""
        return {"files_new": len(self.new), "files_changed": len(self.changed), "files_gone": len(self.gone)}


def compare(before: Sequence[Source], now: Sequence[Source]) -> Changes:
    """Compare files by URL, size and version: etag, checksum or time of change, whichever their filesystem tells."""
    known, present = {source.url: source for source in before}, {source.url for source in now}
    new = tuple(source for source in now if source.url not in known)
    changed = tuple(s for s in now if s.url in known and _content(s) != _content(known[s.url]))
    return Changes(new, changed, tuple(source for source in before if source.url not in present))


def _content(source: Source) -> tuple[int, str]:
    return source.size, source.version
