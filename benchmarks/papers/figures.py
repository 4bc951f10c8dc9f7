"""What a paper says."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Figures:
    """What one place of a paper says, by name."""

    source: str  # the place, such as "table 2" or "section 5.1"
    values: Mapping[Any, float]  # as printed there

    def __getitem__(self, name: Any) -> float:
        return self.values[name]

    def get(self, name: Any) -> float | None:
        """Return a figure, or None where the paper has none."""
        return self.values.get(name)


@dataclass(frozen=True)
class Paper:
    """A paper: authors, year and title; its hardware, corpora and settings; and its figures."""

    title: str
    setting: str
    figures: tuple[Figures, ...]
