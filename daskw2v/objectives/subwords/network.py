"""A convolutional network from a word's characters to its vector, in NumPy: it serves words, and is the reference.

Each character of the network's alphabet has a number, and a vector. Filters of several widths are applied from each
character of the word on. The largest and the smallest value of each filter over all places are added, and a linear
layer computes the word's vector from these sums. Li et al. (2019, section 5.8) flatten the values of all places
instead: the effect of a suffix then depends on its distance from the begin of the word, and the length of words is
limited. Here it does not depend on the place; markers of begin and end let filters recognize prefixes and suffixes.

The smallest value is added because the mean of the largest is far above 0: with that alone, the vectors of all words
move together and learn several times as slowly. The mean of the sum is about 0 for words of any length.

All steps before the extremes are linear, so the contribution of a character to a filter at a place is a number in a
table. The network of a word then takes additions only, a 32nd of the work of a convolution.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import zarr

from daskw2v.errors import StoreError
from daskw2v.fields import PickledFields
from daskw2v.store.arrays import read_array, write_array
from daskw2v.types import BoolArray, Float32Array, Int32Array, Int64Array

LENGTH = 24  # numbers of a word, markers included
MOST = 256  # characters known

UNKNOWN, BEGIN, END = 1, 2, 3  # 0 is padding
_FIRST = 4  # number of the first character
_LONGEST = 1 << 12  # numbers of a word that a stored network may ask for
_AT_ONCE = 1024  # words: about 150 MB in training if words are long

Floats = npt.NDArray[Any]  # float32; float64 as a reference
Weights = dict[str, Floats]
"""`characters` (n_characters, C): vectors of the numbers from 1 on; `filters_<width>` (width * C, F), of each width;
`output` (F of all widths, D); `bias` (D,)."""


@dataclass(frozen=True)
class Alphabet(PickledFields):
    """Characters and their numbers.

    A character is a Unicode code point. Combining marks are characters of their own, unless the tokenizer composes
    them. A word is a marker of its begin, its characters, a marker of its end, and zeros. The middle of a word that is
    too long is left out.

    Parameters
    ----------
    characters
        The known characters, in order of their numbers.
    length
        Numbers of each word.
    """

    characters: str
    length: int = LENGTH

    @classmethod
    def of(cls, words: Iterable[str], most: int = MOST) -> Self:
        """Return an alphabet of the `most` characters that occur in the most words.

        Each word counts once, whatever its frequency: the network learns from each word alike.
        """
        counts = Counter(chain.from_iterable(map(set, words)))
        ranked = sorted(counts, key=lambda character: (-counts[character], character))
        return cls("".join(ranked[:most]))

    def __len__(self) -> int:
        """Count the numbers besides padding: 1 to this one."""
        return _FIRST - 1 + len(self.characters)

    @cached_property
    def _codes(self) -> tuple[npt.NDArray[np.uint32], Int32Array]:
        """Return code points in order, and the number of each; the last one is above all code points."""
        codes = _code_points(self.characters)
        order = np.argsort(codes)
        return np.append(codes[order], np.uint32(0xFFFFFFFF)), np.append(order + _FIRST, UNKNOWN).astype(np.int32)

    def encode(self, words: Sequence[str]) -> Int32Array:
        """Return the numbers of each word's characters, shape (n, length) int32: 0 behind its end, 1 for unknown."""
        most = self.length - 2
        head, tail = most - most // 2, most // 2
        shown = [word if len(word) <= most else word[:head] + word[len(word) - tail :] for word in words]
        lengths = np.fromiter(map(len, shown), np.int64, len(shown))
        codes, numbers = self._codes
        text = _code_points("".join(shown))
        places = np.searchsorted(codes, text)
        encoded = np.zeros((len(shown), self.length), np.int32)
        encoded[:, 0] = BEGIN
        within = np.arange(1, self.length - 1) <= lengths[:, None]
        encoded[:, 1:-1][within] = np.where(codes[places] == text, numbers[places], UNKNOWN)
        encoded[np.arange(len(shown)), lengths + 1] = END
        return encoded


def _code_points(text: str) -> npt.NDArray[np.uint32]:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)


def rows_of(weights: Weights, characters: Int32Array) -> Floats:
    """Return words' vectors, shape (n, D), of the weights' type: float32, or float64 as the reference.

    Parameters
    ----------
    weights
        The network.
    characters
        Words as `Alphabet.encode` returns them, shape (n, length) int32.
    """
    vectors = np.concatenate([np.zeros_like(weights["characters"][:1]), weights["characters"]])
    tables = {}  # of each width, what a character adds to each filter, place by place
    for width in widths_of(weights):
        filters = weights[filters_of(width)].reshape(width, vectors.shape[1], -1)
        tables[width] = (vectors @ filters).reshape(width * len(vectors), -1)
    rows = np.empty((len(characters), len(weights["bias"])), weights["bias"].dtype)
    for words, batch in batches(characters):
        extremes = []
        for width, table in tables.items():
            first, *others = np.moveaxis(windows(batch, width, len(vectors)), 2, 0)
            values = table[first]
            for other in others:
                values += table[other]
            extremes.append(values.max(axis=1) + values.min(axis=1))
        rows[words] = np.concatenate(extremes, axis=1) @ weights["output"] + weights["bias"]
    return rows


def batches(characters: Int32Array) -> Iterator[tuple[Int64Array, Int32Array]]:
    """Cut words into batches of like length, so that little of what is computed is padding.

    Yields
    ------
    words
        Numbers of a batch's words, shape (m,).
    characters
        Their characters as far as the longest goes, shape (m, n) int32.
    """
    lengths = np.count_nonzero(characters, axis=1)
    order = np.argsort(lengths, kind="stable")
    for start in range(0, len(order), _AT_ONCE):
        words = order[start : start + _AT_ONCE]
        yield words, characters[words, : lengths[words[-1]]]


def windows(characters: Int32Array, width: int, n_numbers: int) -> Int32Array:
    """Return the rows of a filter's table that it meets, from each character on, shape (m, n + 1, width) int32.

    Row `place * n_numbers + number` stands for a character below a place of the filter. Zeros follow the end. The last
    filter lies on zeros alone: so 0 is among the values of any word, with longer ones in its batch or without.
    """
    padded = np.pad(characters, ((0, 0), (0, width)))
    below = np.lib.stride_tricks.sliding_window_view(padded, width, axis=1)
    rows: Int32Array = below + np.arange(width, dtype=np.int32) * np.int32(n_numbers)
    return rows


def widths_of(weights: Weights) -> list[int]:
    """Return the widths of a network's filters, as the linear layer has them in order."""
    return sorted(int(name.removeprefix("filters_")) for name in weights if name.startswith("filters_"))


def filters_of(width: int) -> str:
    """Return the name of the weights of a width's filters."""
    return f"filters_{width}"


@dataclass(frozen=True, eq=False)
class Subwords:
    """A network and the characters it knows: a vector for any word.

    Parameters
    ----------
    alphabet
        The characters.
    weights
        The network, float32.
    """

    alphabet: Alphabet
    weights: Weights

    @property
    def vector_size(self) -> int:
        """Dimensions of a vector."""
        return len(self.weights["bias"])

    def knows(self, words: Sequence[str]) -> BoolArray:
        """Return which words have a vector, shape (n,): all but the empty one."""
        return np.array([word != "" for word in words], bool)

    def vectors(self, words: Sequence[str]) -> Float32Array:
        """Return words' vectors, seen in training or not, shape (n, D) float32."""
        return rows_of(self.weights, self.alphabet.encode(words))

    def save(self, group: zarr.Group) -> None:
        """Write weights as arrays of a Zarr group, and the alphabet as its attributes."""
        for name, values in self.weights.items():
            write_array(group, name, values)
        group.attrs.update(
            {
                "characters": [ord(character) for character in self.alphabet.characters],
                "length": self.alphabet.length,
                "widths": widths_of(self.weights),
            }
        )

    @classmethod
    def load(cls, group: zarr.Group) -> Self:
        """Read what `save` wrote.

        Raises
        ------
        StoreError
            If an array or attribute is missing or damaged, or they contradict each other.
        """
        attributes: Any = group.attrs
        characters, length, widths = (attributes.get(name) for name in ("characters", "length", "widths"))
        fit = _are_counts(characters, 0, 0x110000), _are_counts([length], 3, _LONGEST), _are_counts(widths, 1)
        if not (all(fit) and widths):
            raise _damaged(group, "its attributes characters, length and widths are not those of a network")
        alphabet = Alphabet("".join(map(chr, characters)), length)
        weights = {name: read_array(group, name) for name in shapes_of(widths, 0, 0, 0, 0)}
        filters = weights["output"].shape[0] // len(widths)
        shapes = shapes_of(widths, len(alphabet), weights["characters"].shape[-1], filters, weights["output"].shape[-1])
        for name, values in weights.items():
            if values.shape != shapes[name] or values.dtype != np.float32:
                raise _damaged(group, f"{name} is {values.dtype} of shape {values.shape}, not float32 {shapes[name]}")
            if not np.isfinite(values).all():
                raise _damaged(group, f"{name} holds NaN or infinity")
        return cls(alphabet, weights)


def shapes_of(
    widths: Sequence[int], n_characters: int, character_size: int, filters: int, vector_size: int
) -> dict[str, tuple[int, ...]]:
    """Return the shapes of a network's weights; `filters` is the number of filters of each width."""
    return {
        "characters": (n_characters, character_size),
        **{filters_of(width): (width * character_size, filters) for width in sorted(widths)},
        "output": (len(widths) * filters, vector_size),
        "bias": (vector_size,),
    }


def _are_counts(values: Any, least: int, above: float = np.inf) -> bool:
    return isinstance(values, list) and all(type(value) is int and least <= value < above for value in values)


def _damaged(group: zarr.Group, what: str) -> StoreError:
    return StoreError(
        f"The subword network at {group.store_path} is damaged: {what}.",
        "Train again, or take another version of the model.",
    )
