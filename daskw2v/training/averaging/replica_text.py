"""The text of a replica's work, piece by piece."""

from collections.abc import Callable, Iterator

import numpy as np

from daskw2v.kernels.rng import Purpose, stream
from daskw2v.objectives.base import Rate
from daskw2v.sampling.run import Run
from daskw2v.sampling.segments import cut
from daskw2v.sampling.text import open_text
from daskw2v.training.averaging.round_schedule import ReplicaWork
from daskw2v.training.devices import TextPiece


def loads_of(run: Run, work: ReplicaWork, length: int, words: list[int]) -> Iterator[Callable[[], TextPiece]]:
    """Yield what loads each piece of the work, of some length, in order; loading one appends its corpus words."""
    params, text = run.params, open_text(run)
    for epoch, start, stop, rate in work.pieces(text.length):
        key = stream(params.seed, Purpose.SUBSAMPLE, epoch)
        for a, b in cut(start, stop, length):

            def load(a: int = a, b: int = b, key: np.uint64 = key, rate: Rate = rate, epoch: int = epoch) -> TextPiece:
                segment, known = text.reader.read(a, b, params.window, text.keep, key)
                words.append(known)
                return TextPiece(segment, *segment.centers(a, b), rate, epoch)

            yield load
