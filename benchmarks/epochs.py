"""An epoch as a worker's task, timed."""

import time
from collections.abc import Callable

from benchmarks.texts import Text
from daskw2v.devices import Threads, threads_of
from daskw2v.objectives import find_objective, settled, start_alpha
from daskw2v.params import Params, Resources
from daskw2v.sampling.run import Run
from daskw2v.strategies.blocks import cut_tables, initial_block
from daskw2v.strategies.replica import train_replica
from daskw2v.strategies.schedule import Work


def epoch_seconds(text: Text, params: Params, width: Threads, device: str = "cpu") -> Callable[[], float]:
    """Return what trains an epoch, and returns its seconds; it has done so once, and is compiled."""
    params = settled(params)
    run = Run(text.work, text.corpus.name, text.vocabulary, params, device)
    blocks = cut_tables(find_objective(params.objective).tables(params, text.vocabulary.size), params.vector_size)
    rows = [initial_block(run, block) for block in blocks]
    work = Work(0, 0, text.corpus.n_tokens, start_alpha(params), params.min_alpha)

    def measure() -> float:
        began = time.perf_counter()
        train_replica(run, width, work, blocks, *rows)
        return time.perf_counter() - began

    measure()  # compiles
    return measure


def our_speed(text: Text, params: Params, threads: int, device: str = "cpu") -> Callable[[], float]:
    """Return what trains an epoch, and returns words/s before subsampling; it has done so once, and is compiled."""
    seconds = epoch_seconds(text, params, threads_of(threads, Resources()), device)
    return lambda: text.vocabulary.total / seconds()
