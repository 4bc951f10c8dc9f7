"""What tests of rotation train: a small text of topics, and its variants."""

from pathlib import Path

import numpy as np

from daskw2v import Params, Resources, Vectors

PARAMS = Params(
    vector_size=12, min_count=1, epochs=2, sample=1e-2, strategy="rotation", n_partitions=8, passes_per_epoch=2
)
RESOURCES = Resources(threads=1, block_size="32 KiB")
VARIANTS = {
    **{rule: {"negative_rule": rule} for rule in ("tns", "sns", "bns")},
    "sg_hs": {"objective": "sg_hs"},
    "copies": {"copied_words": 11},
}


class Stop(Exception):
    """Ends a training from its listener."""


def same(a: Vectors, b: Vectors) -> None:
    """Check that two models have the same bits."""
    np.testing.assert_array_equal(a.vectors[:], b.vectors[:])


def write_topics(path: Path) -> Path:
    """Write 800 sentences, each of the words of a topic; return the path."""
    rng = np.random.default_rng(0)
    topics = rng.integers(0, 6, 800)
    words = [[f"topic{t}_{w}" for w in np.minimum(rng.zipf(1.3, 12), 15)] for t in topics]
    path.write_text("".join(" ".join(sentence) + "\n" for sentence in words))
    return path
