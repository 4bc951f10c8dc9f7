"""A finished version of a model, and what may be wrong with versions."""

from datetime import UTC, datetime
from typing import Any, NamedTuple

from daskw2v.errors import DamageError, FormatError
from daskw2v.store.limits import refused, shown


class Version(NamedTuple):
    """A finished version: its name, manifest and tags, and whether it is served."""

    name: str
    manifest: dict[str, Any]
    tags: tuple[str, ...]
    served: bool

    @property
    def created(self) -> datetime:
        """Time at which it was finished.

        Raises
        ------
        FormatError
            If its manifest holds no time.
        """
        try:
            return datetime.fromisoformat(self.manifest["created"]).astimezone(UTC)
        except (LookupError, TypeError, ValueError, OverflowError):
            raise self._damaged("created") from None

    @property
    def words(self) -> int:
        """Number of its words; raises as `created` does."""
        match self.manifest.get("tables"):
            case {"input": [int(words), int()]}:
                return words
        raise self._damaged("tables")

    def _damaged(self, entry: str) -> FormatError:
        return refused(f"The manifest of {self.name}", f"holds {entry}={shown(self.manifest.get(entry))}")


class Problems(NamedTuple):
    """What is wrong with versions, by their names: damage, or the error of one that another daskw2v wrote."""

    damaged: dict[str, list[DamageError]]
    foreign: dict[str, FormatError]
