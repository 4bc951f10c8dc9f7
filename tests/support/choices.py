"""Lists of small numbers that decide what a drawn test does, so that it can be repeated and shrunk."""

import random
from collections.abc import Callable, Sequence
from typing import Any


class Choices:
    """Numbers that decide a schedule: those of a list, then zeros; or drawn by a seed. `taken` has those used."""

    def __init__(self, numbers: Sequence[int] | None = None, seed: int | None = None) -> None:
        self._given = None if numbers is None else iter(numbers)
        self._random = random.Random(seed)
        self.taken: list[int] = []

    def below(self, bound: int) -> int:
        number = int(self._random.random() * bound) if self._given is None else next(self._given, 0) % bound
        self.taken.append(number)
        return number

    def of(self, values: Sequence[Any]) -> Any:
        return values[self.below(len(values))]


def shrink(numbers: Sequence[int], fails: Callable[[Sequence[int]], bool]) -> list[int]:
    """Return a short list of small numbers for which `fails` holds, as it does for `numbers`."""
    best, size = list(numbers), max(1, len(numbers) // 2)
    while size:
        start = 0
        while start < len(best):
            for shorter in (best[:start] + best[start + size :], best[:start] + [0] * size + best[start + size :]):
                if shorter != best and len(shorter) <= len(best) and fails(shorter):
                    best = shorter
                    break
            else:
                start += size
        size //= 2
    return best
