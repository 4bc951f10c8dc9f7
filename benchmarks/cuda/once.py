"""A drawn text trained once on the GPU, for Nsight Compute: `python -m benchmarks.cuda.once JSON`."""

import argparse
import io
import json
import sys
from pathlib import Path

from benchmarks.cuda.bench import Bench
from benchmarks.cuda.launching import Launch
from daskw2v.config.params import Params


def main() -> None:
    what = json.loads(sys.argv[1])
    bench = Bench(argparse.Namespace(tokens=what["tokens"]), Path(), io.StringIO())
    Launch(Params(**what["params"]), bench.zipf(what["words"])).seconds()


if __name__ == "__main__":
    main()
