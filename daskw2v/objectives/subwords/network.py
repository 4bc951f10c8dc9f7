"""A convolutional network from a word's characters to its vector, in NumPy: it serves words, and is the reference.

Each character of the network's alphabet has a number, and a vector. Filters of several widths are applied from each
character of the word on. The hyperbolic tangents of their values at all positions are flattened, and a fully connected
layer computes the word's vector (Li et al. 2019, section 5.8, which names no activation and no sizes). So the effect of
a suffix depends on its distance from the begin of the word, and the length of words is limited.

All steps before the activation are linear, so the contribution of a character to a filter at a position is a number in
a table. The filters of a word then take additions only, a 32nd of the work of a convolution; most of the work is the
fully connected layer's. Behind the end of a word all values are 0: words of a batch are cut where the longest of them
ends. The mean of the values is about 0, so the
vectors of words do not begin with much in common, as they do with values of one sign.
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

from daskw2v.errors import FormatError, StoreError
from daskw2v.fields import PickledFields
from daskw2v.store.arrays import read_array, write_array
from daskw2v.types import BoolArray, Float32Array, Int32Array, Int64Array

LENGTH = 24  # numbers of a word, markers included
MAX_CHARACTERS = 256  # characters known

UNKNOWN, BEGIN, END = 1, 2, 3  # 0 is padding
_FIRST = 4  # number of the first character
_MAX_LENGTH = 1 << 12  # numbers of a word that a stored network may ask for
_AT_ONCE = 1024  # words: about 150 MB in training if words are long

Floats = npt.NDArray[Any]  # float32; float64 as a reference
Weights = dict[str, Floats]
"""`characters` (n_characters, C): vectors of the numbers from 1 on; `filters_<width>` (width * C, F), of each width;
`output` (length * F of all widths, D), position after position; `bias` (D,). n_characters is `len(alphabet)`."""


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
    def from_words(cls, words: Iterable[str], max_characters: int = MAX_CHARACTERS) -> Self:
        """Return an alphabet of the `max_characters` characters that occur in the most words.

        Each word counts once, whatever its frequency: the network learns from each word alike.
        """
        counts = Counter(chain.from_iterable(map(set, words)))
        ranked = sorted(counts, key=lambda character: (-counts[character], character))
        return cls("".join(ranked[:max_characters]))

    def __len__(self) -> int:
        """Return the largest number of a character or marker; 0 is padding."""
        return _FIRST - 1 + len(self.characters)

    @cached_property
    def _codes(self) -> tuple[npt.NDArray[np.uint32], Int32Array]:
        """Sorted code points, and the number of each; the last entry, above all code points, is unknown."""
        codes = _code_points(self.characters)
        order = np.argsort(codes)
        return np.append(codes[order], np.uint32(0xFFFFFFFF)), np.append(order + _FIRST, UNKNOWN).astype(np.int32)

    def encode(self, words: Sequence[str]) -> Int32Array:
        """Return the numbers of n words' characters and markers, (n, length) int32: 0 behind the end, 1 if unknown."""
        max_characters = self.length - 2
        head, tail = max_characters - max_characters // 2, max_characters // 2
        shortened = [word if len(word) <= max_characters else word[:head] + word[len(word) - tail :] for word in words]
        lengths = np.fromiter(map(len, shortened), np.int64, len(shortened))
        codes, numbers = self._codes
        text = _code_points("".join(shortened))
        indices = np.searchsorted(codes, text)
        encoded = np.zeros((len(shortened), self.length), np.int32)
        encoded[:, 0] = BEGIN
        is_character = np.arange(1, self.length - 1) <= lengths[:, None]
        encoded[:, 1:-1][is_character] = np.where(codes[indices] == text, numbers[indices], UNKNOWN)
        encoded[np.arange(len(shortened)), lengths + 1] = END
        return encoded


def _code_points(text: str) -> npt.NDArray[np.uint32]:
    """Return the code points of a text, shape (characters,) uint32."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)


def compute_vectors(weights: Weights, characters: Int32Array) -> Floats:
    """Return the vectors of n words, shape (n, D), of the weights' type: float32, or float64 as the reference.

    Parameters
    ----------
    weights
        The network.
    characters
        Words as `Alphabet.encode` returns them, shape (n, length) int32.
    """
    vectors = np.concatenate([np.zeros_like(weights["characters"][:1]), weights["characters"]])
    tables = {}  # of each width, what a character adds to each filter at each position
    for width in filter_widths(weights):
        filters = weights[filter_name(width)].reshape(width, vectors.shape[1], -1)
        tables[width] = (vectors @ filters).reshape(width * len(vectors), -1)
    rows = np.empty((len(characters), len(weights["bias"])), weights["bias"].dtype)
    for words, batch in cut_batches(characters):
        values = []
        for width, table in tables.items():
            first, *remaining = np.moveaxis(filter_windows(batch, width, len(vectors)), 2, 0)
            sums = table[first]
            for position in remaining:
                sums += table[position]
            values.append(np.tanh(sums))
        flat = np.concatenate(values, axis=2).reshape(len(batch), -1)
        rows[words] = flat @ weights["output"][: flat.shape[1]] + weights["bias"]
    return rows


def cut_batches(characters: Int32Array) -> Iterator[tuple[Int64Array, Int32Array]]:
    """Yield batches of words of similar length, so that little padding is computed.

    Yields
    ------
    words
        Indices of a batch's words, shape (m,).
    characters
        Their numbers of `Alphabet.encode`, as many as the longest of them has, shape (m, n) int32.
    """
    lengths = np.count_nonzero(characters, axis=1)
    order = np.argsort(lengths, kind="stable")
    for start in range(0, len(order), _AT_ONCE):
        words = order[start : start + _AT_ONCE]
        yield words, characters[words, : lengths[words[-1]]]


def filter_windows(characters: Int32Array, width: int, n_numbers: int) -> Int32Array:
    """Return the rows of a filter's table for each window of m words, shape (m, n, width) int32.

    `characters` are numbers below `n_numbers`, shape (m, n). A window is `width` consecutive characters, and begins at
    each character. Row `position * n_numbers + number` is of a character at a position of the filter. Zeros follow the
    end.
    """
    padded = np.pad(characters, ((0, 0), (0, width - 1)))
    numbers = np.lib.stride_tricks.sliding_window_view(padded, width, axis=1)
    rows: Int32Array = numbers + np.arange(width, dtype=np.int32) * np.int32(n_numbers)
    return rows


def filter_widths(weights: Weights) -> list[int]:
    """Return the widths of a network's filters, ascending, in the order of the linear layer."""
    return sorted(int(name.removeprefix("filters_")) for name in weights if name.startswith("filters_"))


def filter_name(width: int) -> str:
    """Return the name of the weights of the filters of a width."""
    return f"filters_{width}"


@dataclass(frozen=True, eq=False)
class Subwords:
    """A network and its alphabet, which compute a vector of any word.

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
        """Return whether each of n words has a vector, shape (n,) bool: all but the empty word."""
        return np.array([word != "" for word in words], bool)

    def vectors(self, words: Sequence[str]) -> Float32Array:
        """Return the vectors of n words, in the vocabulary or not, shape (n, D) float32."""
        return compute_vectors(self.weights, self.alphabet.encode(words))

    def save(self, group: zarr.Group) -> None:
        """Write the weights as arrays of a Zarr group, and the alphabet as its attributes."""
        for name, values in self.weights.items():
            write_array(group, name, values)
        characters, widths = [ord(character) for character in self.alphabet.characters], filter_widths(self.weights)
        group.attrs.update({"characters": characters, "length": self.alphabet.length, "widths": widths})

    @classmethod
    def load(cls, group: zarr.Group) -> Self:
        """Read a network that `save` wrote.

        Raises
        ------
        StoreError
            If an array or attribute is missing or damaged, or they contradict each other.
        FormatError
            If an earlier daskw2v wrote the network, which pooled the values of filters.
        """
        attributes: Any = group.attrs
        characters, length, widths = (attributes.get(name) for name in ("characters", "length", "widths"))
        are_valid = _are_counts(characters, 0, 0x110000), _are_counts([length], 3, _MAX_LENGTH), _are_counts(widths, 1)
        if not (all(are_valid) and widths and len({*widths}) == len(widths)):
            raise _damaged(group, "its attributes characters, length and widths are not those of a network")
        alphabet = Alphabet("".join(map(chr, characters)), length)
        weights = {name: read_array(group, name) for name in weight_shapes(widths, 0, 0, 0, 0, 0)}
        filters = weights[filter_name(widths[0])].shape[-1]
        character_size, vector_size = weights["characters"].shape[-1], weights["output"].shape[-1]
        shapes = weight_shapes(widths, len(alphabet), character_size, filters, vector_size, length)
        if len(weights["output"]) == len(widths) * filters < shapes["output"][0]:
            raise FormatError(
                f"The subword network at {group.store_path} is of an earlier daskw2v, which pooled filters.",
                "Delete the version, or the folder of its run, and train again; or open it with that daskw2v.",
            )
        for name, values in weights.items():
            if values.shape != shapes[name] or values.dtype != np.float32:
                raise _damaged(group, f"{name} is {values.dtype} of shape {values.shape}, not float32 {shapes[name]}")
            if not np.isfinite(values).all():
                raise _damaged(group, f"{name} holds NaN or infinity")
        return cls(alphabet, weights)


def weight_shapes(
    widths: Sequence[int], n_characters: int, character_size: int, filters: int, vector_size: int, length: int
) -> dict[str, tuple[int, ...]]:
    """Return the shapes of a network's weights; `filters` are those of each width, `length` the numbers of a word."""
    return {
        "characters": (n_characters, character_size),
        **{filter_name(width): (width * character_size, filters) for width in sorted(widths)},
        "output": (length * len(widths) * filters, vector_size),
        "bias": (vector_size,),
    }


def _are_counts(values: Any, minimum: int, limit: float = np.inf) -> bool:
    """Return whether a value is a list of integers from `minimum` on and below `limit`."""
    return isinstance(values, list) and all(type(value) is int and minimum <= value < limit for value in values)


def _damaged(group: zarr.Group, problem: str) -> StoreError:
    """Return the error for a damaged network in a group."""
    return StoreError(
        f"The subword network at {group.store_path} is damaged: {problem}.",
        "Train again, or take another version of the model.",
    )
