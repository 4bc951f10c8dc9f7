"""Kernels over text on a GPU, timed by its own clock: text and tables lie there already."""

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.cuda.bench import Corpus
from daskw2v.config.params import Params
from daskw2v.kernels.cuda import load
from daskw2v.kernels.simd import padded
from daskw2v.objectives.base import DeviceTables, Rate
from daskw2v.objectives.registry import OBJECTIVES, settle_params, start_alpha
from daskw2v.training.devices.base import map_arrays


class Launch:
    """A model and a text on the GPU."""

    def __init__(self, params: Params, corpus: Corpus) -> None:
        self._cuda, self._pieces = load("numba.cuda"), load("daskw2v.objectives.cuda.pieces")
        params, put, width = settle_params(params), self._cuda.to_device, padded(params.vector_size)
        objective: Any = OBJECTIVES[params.objective.name]
        self._train, self._rate = objective.trainers["cuda"], Rate(start_alpha(params), 0.0, 0)
        words, most = corpus.read(params), self._pieces.room(None)
        self.raw, self.trained, self.in_flight = words.raw, len(words.segment.tokens), 0
        prepared = objective.prepare(params, corpus.counts)
        touched = objective.touched(prepared, corpus.counts)
        likely = [put(self._pieces.damped_chances(touched[name], most)) for name in ("input", "output")]
        tables: list[Any] = []
        for name, n in objective.tables(params, len(corpus.counts)).items():
            rows = np.zeros((n, width), np.float32)
            rows[:, : params.vector_size] = objective.initial(params, name, np.arange(n))
            tables.append(put(rows.ravel()))
        self._totals, self._stream = put(np.zeros(2)), self._cuda.stream()
        self._memory = DeviceTables(
            tables[0], tables[1], width, 0, most, likely[0], likely[1], self._totals, self._stream
        )
        self._segment, self._prepared = map_arrays(put, words.segment), map_arrays(put, prepared)
        self._centers = [put(np.array([center])) for center in (0, self.trained)]

    def run(self) -> None:
        """Train all of the text once, without waiting for the end; note how many warps do."""
        warps = self._train(self._segment, *self._centers, self._memory, self._rate, 0, self._prepared)
        self.in_flight = self._pieces.count_pieces(self.trained, warps)

    def seconds(self) -> float:
        """Train all of the text once; return what it takes on the GPU."""
        return elapsed(self._cuda, self._stream, self.run)


def elapsed(cuda: Any, stream: Any, run: Callable[[], None]) -> float:
    """Return the seconds that what is put into a stream takes, by the GPU's events."""
    began, ended = cuda.event(), cuda.event()
    began.record(stream)
    run()
    ended.record(stream)
    ended.synchronize()
    return abs(float(began.elapsed_time(ended))) / 1e3  # the simulator counts backwards
