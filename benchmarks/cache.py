"""Scores that are kept from run to run: by what was trained, and by the package's code."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import daskw2v
from daskw2v.shards.layout import digest
from daskw2v.store.storage import Store

Scores = dict[str, float]  # by name of the set, and "seconds": those of the whole call

CODE = digest([path.read_text() for path in sorted(Path(daskw2v.__file__).parent.rglob("*.py"))])


def kept(cache: Store, name: str, about: dict[str, Any], make: Callable[[], Scores]) -> Scores:
    """Return the scores that are kept under a name; where there are none, make and keep them."""
    known = cache.read_manifest(name)
    if known is not None:
        return dict(known["scores"])
    scores = make()
    cache.write_manifest({**about, "scores": scores}, name)
    return scores
