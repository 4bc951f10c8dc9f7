"""Everything that there is to measure about the kernels for NVIDIA GPUs, as Markdown.

    python -m benchmarks.cuda [--tables kernels model correctness ceilings sweep speed batching cutting busy bytes
        quality cost peers] [--parts 10] [--times 5] [--dims 100 128] [--kernels sgns] [--capabilities 75 80 90 100]
        [--vocabularies 71000 555514] [--tokens 20000000] [--fewest 132]
        [--windows 5] [--samples 1e-4 0] [--cards A100 H100 H200 B200] [--card H200]
        [--epochs 5] [--seeds 1 2 3] [--cache DIR] [--price 3.0] [--cpu-price 1.0] [--rows FILE] [--json]
        [--peer NAME='command with {text} {output} {size} {window} {negative} {epochs} {sample}' ...]

`kernels`, `model` and `busy` need no GPU, only daskw2v[cuda], and nvdisasm for instructions of machine code: some 5, 15
and 5 minutes on one core. `batching` needs none, either. All others end with an error where there is none, and need
daskw2v[cuda,bench]. `quality` keeps its scores in --cache; `bytes` asks Nsight Compute where `ncu` is on PATH; `cost`
wants a price; `peers` runs other programs on the same text, such as the binary of FULL-W2V, whose license then is yours
to mind. `busy` trains Wikipedia with the shortest rows of --dims, and drawn texts with the longest. --parts 0 leaves
Wikipedia out of what is timed; --vocabularies without a number, drawn texts. A table that fails is reported, and the
others go on.
"""

import argparse
import sys
import tempfile
import traceback
from importlib import import_module
from pathlib import Path

from benchmarks.common import finish
from benchmarks.cuda.bench import Bench, has_gpu
from benchmarks.cuda.cards import CARDS
from benchmarks.cuda.peers import peer_of
from benchmarks.options import LEFT_OUT, Smoke, parsed
from benchmarks.tables import keeper
from daskw2v.errors import Daskw2vError
from daskw2v.extras import needed
from daskw2v.kernels.cuda import check_gpu, load
from tests.support.cuda.compiling import KERNELS
from tests.support.cuda.occupancy import MULTIPROCESSORS

TABLES = {  # modules that need Numba's CUDA target are imported after a GPU was found
    "kernels": "kernels",
    "model": "model",
    "correctness": "correctness",
    "ceilings": "ceilings",
    "sweep": "sweep",
    "speed": "speed",
    "batching": "speed",
    "cutting": "speed",
    "busy": "busy",
    "bytes": "demand",
    "quality": "quality",
    "cost": "cost",
    "peers": "peers",
}
CAPABILITIES = [10 * major + minor for major, minor in MULTIPROCESSORS]
NO_GPU = {"kernels", "model", "batching", "busy"}


SMOKE = Smoke(
    {
        "parts": 0.1, "times": 1, "dims": [16], "kernels": ["sgns"], "capabilities": [90],
        "vocabularies": [1000], "tokens": 20_000, "windows": [5], "samples": [1e-4], "cards": ["H200"], "fewest": 32,
        "epochs": 1, "seeds": [1],
    },
    tuple(sorted(NO_GPU)),
)  # fmt: skip


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="+", choices=TABLES, help="all by default; cost where there is a price")
    parser.add_argument("--parts", type=float, default=10, help="tenths of the 100 MB corpus")
    parser.add_argument("--times", type=int, default=5, help="runs of each, where time is taken")
    parser.add_argument(
        "--dims", type=int, nargs="+", default=[100, 128], help="kernels, model, correctness, busy: vector sizes"
    )
    parser.add_argument("--kernels", nargs="+", choices=KERNELS, default=[*KERNELS], help="kernels, model: of which")
    parser.add_argument(
        "--capabilities", type=int, nargs="+", choices=CAPABILITIES, default=[75, 80, 90, 100], help="kernels: of GPUs"
    )
    parser.add_argument("--vocabularies", type=int, nargs="*", default=[71_000, 555_514], help="words of drawn texts")
    parser.add_argument("--tokens", type=int, default=20_000_000, help="of drawn texts")
    parser.add_argument("--windows", type=int, nargs="+", default=[5], help="model: window sizes")
    parser.add_argument("--samples", type=float, nargs="+", default=[1e-4, 0.0], help="model: subsampling")
    parser.add_argument("--cards", choices=CARDS, nargs="+", default=[*CARDS], help="model: GPUs")
    parser.add_argument("--card", choices=CARDS, default="H200", help="busy: the GPU that is stood in for")
    parser.add_argument("--words", type=int, default=2000, help="correctness: of the text")
    parser.add_argument("--rows-a-warp", type=int, default=1024, help="ceilings: read or added by a warp")
    parser.add_argument("--fewest", type=int, default=132, help="sweep, quality: warps in flight to begin with")
    parser.add_argument("--epochs", type=int, default=5, help="quality, peers, busy")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3], help="quality")
    parser.add_argument("--cache", type=Path, help="quality: folder that keeps the scores, so that a run can go on")
    parser.add_argument("--price", type=float, help="cost: dollars an hour of the machine with the GPU")
    parser.add_argument("--cpu-price", type=float, help="cost: dollars an hour of such a machine without it")
    parser.add_argument(
        "--peer", type=peer_of, action="append", default=[], metavar="NAME=COMMAND", help="peers: another program"
    )
    parser.add_argument("--rows", type=Path, help="file to which each row is added at once, as a line of JSON")
    options = parsed(parser, SMOKE, arguments)
    priced = options.price is not None or options.cpu_price is not None
    if "cost" in (options.tables or ()) and not priced:
        parser.error("--tables cost needs --price or --cpu-price")
    options.left_out = [] if options.tables or not options.smoke or has_gpu() else sorted(TABLES.keys() - NO_GPU)
    options.tables = options.tables or [
        name for name in TABLES if name not in options.left_out and (name != "cost" or priced)
    ]
    return options


def function_of(table: str) -> str:
    """Return the name of the function that prints a table."""
    return "demand" if table == "bytes" else table


def run(bench: Bench) -> list[str]:
    """Print the tables of the options; return the names of those that failed, whose errors stand on stderr.

    Raises
    ------
    MissingExtraError, ClusterError
        As `check_gpu` does, before anything is measured, where a table needs a GPU.
    """
    if not NO_GPU.issuperset(bench.options.tables):
        check_gpu()
        gpu = load("numba.cuda").get_current_device()
        bench.note(f"GPU: {gpu.name}, compute capability {'.'.join(map(str, gpu.compute_capability))}")
    if {"kernels", "model", "busy"} & set(bench.options.tables):
        needed("numba_cuda", "cuda")
    return [name for name in bench.options.tables if not printed(name, bench)]


def printed(name: str, bench: Bench) -> bool:
    """Print a table; tell whether that went well. What fails takes no later table down."""
    try:
        module = import_module(f"benchmarks.cuda.{TABLES[name]}")
        getattr(module, function_of(name))(bench)
    except Daskw2vError as error:
        print(f"\n{name}: {error}", file=sys.stderr, flush=True)
        return False
    except Exception:
        print(f"\n{name}:\n{traceback.format_exc()}", file=sys.stderr, flush=True)
        return False
    return True


def main() -> None:
    options = parse()
    with tempfile.TemporaryDirectory() as name:
        bench = Bench(options, Path(name), sys.stderr if options.json else sys.stdout, keep=keeper(options.rows))
        try:
            if options.left_out:
                bench.note(f"{LEFT_OUT}{', '.join(options.left_out)}: there is no GPU")
            failed = run(bench)
        except Daskw2vError as error:
            sys.exit(str(error))
    finish([row for table in bench.tables for row in table.rows], bench.out, as_json=options.json)
    if failed:
        sys.exit(f"These tables failed, as is told above: {', '.join(failed)}.")


if __name__ == "__main__":
    main()
