"""What tests of nights share: text of a day, and Params, Resources and Gates for so little of it."""

import numpy as np

from daskw2v import Gates, Params, Resources

PARAMS = Params(vector_size=8, min_count=2, epochs=2, rounds_per_epoch=2, alpha=0.05)
ONE = Resources(threads=1, block_size="64 KiB")  # the same bits each time; a day is no small file
LOOSE = Gates(min_stability=None, min_kept=None)  # of so little text


def write_day(folder, day, sentences=150, words=60):
    """Write a file of text: sentences of five topics, with a word of that day."""
    rng = np.random.default_rng(day)
    lines = []
    for topic in rng.integers(0, 5, sentences):
        ids = topic * (words // 5) + rng.integers(0, words // 5, 10)
        lines.append(" ".join([*(f"w{i}" for i in ids), f"day{day}"]))
    (folder / f"{day}.txt").write_text("\n".join(lines) + "\n")
