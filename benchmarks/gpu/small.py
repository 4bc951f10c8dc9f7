"""A kernel on a little text by several warps, for compute-sanitizer: `python -m benchmarks.gpu.small KERNEL [--tiny]`.

Several warps have no fixed order: all that was trained must be finite, and something must have moved.
"""

import sys

import numpy as np

from tests.support.cuda.cases import Windows
from tests.support.cuda.compiling import Setting
from tests.support.cuda.trainings import case_of

WARPS, TOKENS = 4, 1200  # pieces of text, each of at least `pieces.PIECE` centers


def main() -> None:
    name, tiny = sys.argv[1], "--tiny" in sys.argv
    case = case_of(name, Setting(8 if tiny else 128), 6 if tiny else TOKENS)
    if isinstance(case, Windows):
        case = case._replace(n_pieces=WARPS)
    before = [table.copy() for table in case.tables]
    found = case.on_gpu()
    if not all(np.isfinite(table).all() for table in (*found.tables, found.totals)):
        sys.exit(f"{name}: something is not finite")
    both = zip(before, found.tables, strict=True)
    if not any((got[:, : start.shape[1]] != start[:, : got.shape[1]]).any() for start, got in both):
        sys.exit(f"{name}: nothing has moved")


if __name__ == "__main__":
    main()
