"""What a model has besides the vectors of its words, and files of other tools have no place for."""

import logging
from collections.abc import Collection, Iterator

from daskw2v.models.queries.vectors import Vectors

NGRAMS = "n-grams (vectors of unseen words)"

_log = logging.getLogger(__name__)


def tell_left_out(vectors: Vectors, place: str, holds: Collection[str] = ()) -> None:
    """Log a warning that names the parts of a model that are not written to a place, which `holds` some of them."""
    missing = [part for part in _parts(vectors) if part not in holds]
    if missing:
        _log.warning("%s lacks parts of the model: %s.", place, ", ".join(missing))


def _parts(vectors: Vectors) -> Iterator[str]:
    if vectors.features is not None and vectors.features.spells:
        yield NGRAMS
    if vectors.features is not None and vectors.features.keys.columns:
        yield "features (vectors of new items)"
    if vectors.subwords is not None:
        yield "subword network (vectors of unseen words)"
    if vectors.metadata.get("phrases"):
        yield "phrases (how words of new text are joined)"
