"""A process of `benchmarks.peers`: trains with fastText, and prints what an epoch took as JSON."""

import json
import sys
from typing import Any

from benchmarks.stopwatch import Took, stopwatch
from daskw2v.extras import needed


def fasttext_took(arguments: dict[str, Any]) -> Took:
    """Return what an epoch takes besides counting words and making tables."""
    fasttext = needed("fasttext", "bench")

    def train(epochs: int) -> Took:
        took = stopwatch()
        fasttext.train_unsupervised(**arguments, epoch=epochs)
        return took()

    without, whole = train(0), train(1)
    return Took(*(b - a for a, b in zip(without, whole, strict=True)))


if __name__ == "__main__":
    print(json.dumps(fasttext_took(json.loads(sys.argv[1]))))
