"""Scores that are kept from run to run: by what was trained, and by the package's code."""

import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import daskw2v
from benchmarks.tables import Spread
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


def means(several: Sequence[Scores]) -> dict[str, Spread]:
    """Return the mean of each score that all of them have, and its extremes."""
    names = [name for name in several[0] if all(name in scores for scores in several)]
    return {name: Spread.of((scores[name] for scores in several), statistics.mean) for name in names}
