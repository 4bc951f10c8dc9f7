"""Text of bad days, drawn by a seed from what good text is made of."""

from collections.abc import Callable, Iterable

import numpy as np

SENTENCE = 12  # words
LONGEST = 8  # letters


def letters(good: bytes, size: int, rng: np.random.Generator) -> bytes:
    """Return words of random letters, one to eight each."""
    drawn = rng.integers(ord("a"), ord("z") + 1, size, dtype=np.uint8)
    ends = np.cumsum(rng.integers(2, LONGEST + 2, size // 2))
    drawn[ends[ends < size]] = ord(" ")
    return _lines(drawn.tobytes().split())


def spam(good: bytes, size: int, rng: np.random.Generator) -> bytes:
    """Return one sentence of known words again and again."""
    sentence = _lines(rng.choice(_words(good), SENTENCE))
    return sentence * (size // len(sentence))


def shuffled(good: bytes, size: int, rng: np.random.Generator) -> bytes:
    """Return good text whose words stand in any order: as often as ever, but without sense."""
    return _lines(rng.permutation(_words(good[:size])))


def _words(text: bytes) -> np.ndarray:
    return np.array(text.split(), np.bytes_)


def _lines(words: Iterable[bytes]) -> bytes:
    every = list(words)
    return b"".join(b" ".join(every[at : at + SENTENCE]) + b"\n" for at in range(0, len(every), SENTENCE))


GARBAGE: dict[str, Callable[[bytes, int, np.random.Generator], bytes]] = {
    "letters": letters, "spam": spam, "shuffled": shuffled,
}  # fmt: skip
