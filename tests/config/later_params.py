"""Params as a later release may have them."""

from dataclasses import dataclass, fields

from daskw2v.config.params import Params
from daskw2v.config.settings import integer, setting


@dataclass(frozen=True, kw_only=True, init=False)
class LaterParams(Params):
    """Params with a field more for each stage, two for one, and one whose default is None."""

    b_read: int = setting(3, "later", integer(0), stage="read")
    a_read: int = setting(3, "later", integer(0), stage="read")
    a_phrases: int = setting(3, "later", integer(0), stage="phrases")
    a_vocabulary: int = setting(3, "later", integer(0), stage="vocabulary")
    a_matrix: int = setting(3, "later", integer(0), stage="matrix")
    a_train: int | None = setting(None, "later", integer(0), stage="train", optional=True)


def later(stage):
    """Return values of a stage's new fields that are not as by default."""
    return {
        f.name: 7
        for f in fields(LaterParams)
        if f.name not in Params.__dataclass_fields__ and f.metadata["stage"] == stage
    }
