"""Changes of the files of a text between two runs."""

from collections.abc import Sequence
from typing import NamedTuple

from daskw2v.corpus.files import Source

_MAX_SHOWN = 3  # files that a message names


class Changes(NamedTuple):
    """Files that are new, changed (as they are now) and removed (as they were)."""

    new: tuple[Source, ...]
    changed: tuple[Source, ...]
    gone: tuple[Source, ...]

    @property
    def unread(self) -> tuple[Source, ...]:
        """New and changed files, on whose text no version was trained."""
        return self.new + self.changed

    def figures(self) -> dict[str, float]:
        """Return the numbers of new, changed and removed files."""
        return {"files_new": len(self.new), "files_changed": len(self.changed), "files_gone": len(self.gone)}

    def name_new(self) -> str:
        """Return a sentence that names new and changed files, which may have caused a bad version."""
        urls = [source.url for source in self.unread]
        more = f" and {len(urls) - _MAX_SHOWN} more" if len(urls) > _MAX_SHOWN else ""
        return f"New since the served version: {', '.join(urls[:_MAX_SHOWN])}{more}." if urls else "No file is new."


def compare_sources(old_sources: Sequence[Source], sources: Sequence[Source]) -> Changes:
    """Return the changes of files since an earlier run.

    Files are compared by URL, size and version: ETag, checksum or modification time, whichever the filesystem has.
    """
    known, present = (
        {source.identity_name: source for source in old_sources},
        {source.identity_name for source in sources},
    )
    new = tuple(source for source in sources if source.identity_name not in known)
    changed = tuple(s for s in sources if s.identity_name in known and s.content != known[s.identity_name].content)
    return Changes(new, changed, tuple(source for source in old_sources if source.identity_name not in present))
