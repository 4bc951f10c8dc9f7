"""The figures of README.md's first screen, and of its section "Figures", from the records that they are of."""

from benchmarks.records import Record


def front() -> str:
    """Return the lines between the marks of README.md."""
    speed = Record.read("train_speed")
    return f"{speed.number('Training speed', 'sgns, d=100 sample 1e-4, 1 thread, daskw2v', 'M words/s'):.1f}\n"
