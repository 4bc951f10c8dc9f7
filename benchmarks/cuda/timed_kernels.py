"""The kernels of a replica's training, as a stand-in for a GPU takes time for them (`timed`)."""

from collections.abc import Callable
from typing import Any, NamedTuple

from benchmarks.cuda.bounds import FROM_DRAM
from benchmarks.cuda.cards import Card
from benchmarks.cuda.timed import Kernel
from daskw2v.config.params import Params

TRAINS = "over_pieces.<locals>.run"  # the kernel that trains
LOSS = 2.2  # of a pair, about
LAUNCH = 5e-6  # seconds of a kernel that has next to nothing to do


class Text(NamedTuple):
    """What kernels meet: corpus positions of an epoch, known words among them, and those that subsampling leaves."""

    positions: int
    words: float
    kept: float


def kernels(card: Card, words_per_second: float, params: Params, text: Text) -> dict[str, Kernel]:
    """Return what kernels take, by their functions' names, where so many words are trained in a second.

    Cutting of text is bound by memory: each token's bytes are counted once.
    """
    contexts = params.window + 1 if params.shrink_windows else 2 * params.window
    pairs = 1 if params.objective.startswith("cbow") else contexts
    known, kept = text.words / text.positions, text.kept / text.positions

    def moving(of: Callable[..., float]) -> Callable[..., float]:
        return lambda *arguments: LAUNCH + of(*arguments) / (FROM_DRAM * card.dram)

    def n_trained(tables: Any, segment: Any, first: Any, last: Any, *_: Any) -> int:
        return int(last.values[0] - first.values[0])

    def count(*arguments: Any) -> None:
        n = n_trained(*arguments) * pairs
        arguments[-1].values += n, n * LOSS

    def count_known(codes: Any, ids: Any, keep: Any, key: Any, position: int, *rest: Any) -> None:
        inner, outer, _, counts = rest
        counts.values[0] += round(known * max(0, outer - inner))

    def find_centers(before: Any, start: int, stop: int, bounds: Any, centers: Any) -> None:
        centers.values[:2] = round(kept * start), round(kept * stop)

    return {
        TRAINS: Kernel(lambda *arguments: n_trained(*arguments) / words_per_second, count),
        "_look_up": Kernel(moving(lambda codes, *_: (4 + 4 + 8 + 4) * len(codes)), count_known),
        "_count": Kernel(moving(lambda words, kept: 4 * len(words))),
        "_place": Kernel(moving(lambda words, *_: (4 + 4 + kept * (4 + 8)) * len(words))),
        "_bound": Kernel(moving(lambda starts, *_: (8 + 4 + 8) * len(starts))),
        "_close": Kernel(moving(lambda *_: 0.0), find_centers),
        "_add_squares": Kernel(moving(lambda values, total: values.nbytes)),
    }
