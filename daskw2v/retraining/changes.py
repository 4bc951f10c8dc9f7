"""Detection of files that are new or changed since the served version was trained."""

from collections.abc import Sequence
from typing import NamedTuple

from daskw2v.corpus.files import Source


class Changes(NamedTuple):
    """Files that are new, changed (their present state) and removed (their former state)."""

    new: tuple[Source, ...]
    changed: tuple[Source, ...]
    gone: tuple[Source, ...]

    @property
    def unread(self) -> tuple[Source, ...]:
        """Files whose text no version was trained on."""
        return self.new + self.changed

    def figures(self) -> dict[str, float]:
        """Return the number of each."""
        return {"files_new": len(self.new), "files_changed": len(self.changed), "files_gone": len(self.gone)}


def compare(before: Sequence[Source], now: Sequence[Source]) -> Changes:
    """Compare files by URL, size and version: ETag, checksum or modification time, whichever the filesystem has."""
    known, present = {source.place: source for source in before}, {source.place for source in now}
    new = tuple(source for source in now if source.place not in known)
    changed = tuple(s for s in now if s.place in known and s.content != known[s.place].content)
    return Changes(new, changed, tuple(source for source in before if source.place not in present))
