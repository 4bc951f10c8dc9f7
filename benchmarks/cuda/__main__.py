"""Kernels for NVIDIA GPUs: what they compile to, and on a GPU whether they are right, how fast and how good.

    python -m benchmarks.cuda [--tables kernels batching bytes correctness speed quality]
        [--parts 10] [--times 5] [--dims 100 128] [--kernels sgns] [--capabilities 75 80 90 100]
        [--vocabularies 71000 555514] [--tokens 20000000] [--fewest 132] [--epochs 5] [--seeds 1 2 3] [--cache DIR]

`kernels`, `batching` and `bytes` print what they can without a GPU, too. All others end with an error where there is
none. `quality` keeps its scores in --cache. --parts 0 leaves Wikipedia out of what is timed; --vocabularies without a
number, drawn texts.
"""

import sys
from argparse import ArgumentParser
from importlib import import_module
from pathlib import Path

from benchmarks.cuda.bench import Bench, has_gpu
from benchmarks.harness import LEFT_OUT, Benchmark, Smoke
from benchmarks.texts import name_of
from daskw2v.errors import Daskw2vError
from daskw2v.extras import needed
from daskw2v.kernels.cuda import check_gpu
from tests.support.cuda.compiling import KERNELS
from tests.support.cuda.occupancy import MULTIPROCESSORS

TABLES = {  # modules and functions; those that need Numba's CUDA target are imported after a GPU was found
    "kernels": "kernels.kernels",
    "batching": "speed.batching",
    "bytes": "demand.demand",
    "correctness": "correctness.correctness",
    "speed": "speed.speed",
    "quality": "quality.quality",
}
NO_GPU = ("kernels", "batching", "bytes")
CAPABILITIES = [10 * major + minor for major, minor in MULTIPROCESSORS]


def measure(bench: Bench) -> None:
    options = bench.options
    wiki = [name_of(options.parts)] if options.parts else []
    bench.text = "; ".join(
        [*wiki, *(f"{options.tokens:,} tokens of {n:,} words drawn by Zipf's law" for n in options.vocabularies)]
    )
    tables = options.tables
    if options.smoke and tables == [*TABLES] and not has_gpu():
        bench.note(f"{LEFT_OUT}{', '.join(name for name in tables if name not in NO_GPU)}: there is no GPU")
        tables = [*NO_GPU]
    try:
        if not set(tables) <= set(NO_GPU):
            check_gpu()
        needed("numba_cuda", "cuda")
    except Daskw2vError as error:
        sys.exit(str(error))
    for name in tables:
        module, function = TABLES[name].split(".")
        getattr(import_module(f"benchmarks.cuda.{module}"), function)(bench)


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=[*TABLES])
    parser.add_argument("--parts", type=float, default=10, help="of 10 MB")
    parser.add_argument("--times", type=int, default=5, help="runs of each, where time is taken")
    parser.add_argument("--dims", type=int, nargs="+", default=[100, 128], help="kernels, correctness: vector sizes")
    parser.add_argument("--kernels", nargs="+", choices=KERNELS, default=[*KERNELS], help="kernels: which")
    parser.add_argument(
        "--capabilities", type=int, nargs="+", choices=CAPABILITIES, default=[75, 80, 90, 100], help="kernels: of GPUs"
    )
    parser.add_argument("--vocabularies", type=int, nargs="*", default=[71_000, 555_514], help="words of drawn texts")
    parser.add_argument("--tokens", type=int, default=20_000_000, help="of drawn texts")
    parser.add_argument("--words", type=int, default=2000, help="correctness: of the text")
    parser.add_argument("--fewest", type=int, default=132, help="quality: warps in flight to begin with")
    parser.add_argument("--epochs", type=int, default=5, help="quality")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3], help="quality")
    parser.add_argument("--cache", type=Path, help="quality: folder that keeps the scores, so that a run can go on")


BENCHMARK = Benchmark(
    __doc__,
    ("daskw2v/kernels/cuda", "daskw2v/objectives", "daskw2v/sampling", "daskw2v/training/devices"),
    Smoke(
        {
            "parts": 0.1,
            "times": 1,
            "dims": [16],
            "kernels": ["sgns"],
            "capabilities": [90],
            "vocabularies": [1000],
            "tokens": 20_000,
            "fewest": 32,
            "epochs": 1,
            "seeds": [1],
            "words": 60,
        },
        ("Kernels", "Batching", "Bytes"),
    ),
    add_arguments,
    measure,
    Bench,
)

if __name__ == "__main__":
    BENCHMARK.main()
