"""Text of a day, for nights that read one after another."""

from pathlib import Path

import numpy as np


def write_day(folder: Path, day: int, sentences: int = 150, words: int = 60) -> None:
    """Write a file of text: sentences of words of five topics, with a word of that day."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(day)
    lines = []
    for topic in rng.integers(0, 5, sentences):
        ids = topic * (words // 5) + rng.integers(0, words // 5, 10)
        lines.append(" ".join([*(f"w{i}" for i in ids), f"day{day}"]))
    (folder / f"{day}.txt").write_text("\n".join(lines) + "\n")
