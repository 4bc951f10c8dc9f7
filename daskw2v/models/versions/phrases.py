"""The phrases of a model's text, stored in the model so that new text can be joined in the same way.

Each pass over the text joins pairs of words. The phrases of a pass are in pieces, which are Zarr groups.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
import zarr

from daskw2v.errors import StoreError
from daskw2v.models.stored.store import create_part, read_finished
from daskw2v.models.versions.resolving import read_resolved
from daskw2v.phrases.build import pieces_of
from daskw2v.phrases.reference import Bigram, join_phrases
from daskw2v.shards.layout import Corpus
from daskw2v.shards.words import are_words
from daskw2v.store.arrays import open_subgroup, read_array, write_array
from daskw2v.store.storage import Store
from daskw2v.store.urls import Location

_PHRASES = "phrases"
_ARRAYS = {"words": np.uint8, "offsets": np.int64, "counts": np.int64, "scores": np.float64}


class BigramScore(NamedTuple):
    """Number of occurrences of a phrase's bigram when the phrase was detected, and the bigram's score."""

    occurrences: int
    score: float


@dataclass(frozen=True)
class Phrases:
    """Phrases of two words, in passes: words of a later pass may be phrases of an earlier one.

    Parameters
    ----------
    passes
        Delimiter of each pass, and its phrases: pairs of words with their scores, best first.

    Examples
    --------
    >>> import daskw2v
    >>> text = ["new york is far", "they see new york", "a new car is far", "york they say"] * 20
    >>> settings = {"phrases": 1, "phrase_threshold": 0.1, "vector_size": 4, "min_count": 1, "sample": 0}
    >>> vectors = daskw2v.train(iter(text), work="phrases", listener=None, **settings)
    >>> phrases = daskw2v.Phrases.open("phrases")
    >>> phrases.apply(["in", "new", "york"])
    ['in', 'new_york']
    """

    passes: tuple[tuple[str, Mapping[Bigram, BigramScore]], ...] = ()

    @classmethod
    def open(cls, url: Location, storage_options: Mapping[str, Any] | None = None) -> Self:
        """Read the phrases of a model; there are none if it was trained without phrases.

        Parameters
        ----------
        url
            A work directory or its `models` folder (the served version is read), or one version.
        storage_options
            Options for fsspec.

        Raises
        ------
        StoreError
            If there is no finished model, or its phrases are damaged.

        Examples
        --------
        >>> import daskw2v
        >>> phrases = daskw2v.Phrases.open("work")
        >>> len(phrases)
        0
        """
        return read_resolved(cls._read, url, storage_options)

    @classmethod
    def _read(cls, store: Store) -> Self:
        """Read the phrases of a version from its folder."""
        passes = []
        described = (read_finished(store) or {}).get(_PHRASES, [])
        if not isinstance(described, list):
            raise _make_error(store)
        group = store.open_group()
        for i, entry in enumerate(described):
            match entry:
                case {"delimiter": str(delimiter), "pieces": int(pieces)} if pieces >= 0:
                    # Opened one by one: if the manifest names too many pieces, the first missing one raises
                    groups = (open_subgroup(group, f"{_PHRASES}/{i}/{k}") for k in range(pieces))
                    passes.append((delimiter, _read_pass(groups)))
                case _:
                    raise _make_error(store)
        return cls(tuple(passes))

    @classmethod
    def of(cls, corpus: Corpus, work: Store) -> Self:
        """Return the phrases of a corpus, read from its work directory; raises as `open` does."""
        passes = [
            (entry.delimiter, _read_pass((work / p).open_group() for p in pieces_of(entry))) for entry in corpus.passes
        ]
        return cls(tuple(passes))

    def __len__(self) -> int:
        return sum(len(phrases) for _, phrases in self.passes)

    def __iter__(self) -> Iterator[tuple[str, BigramScore]]:
        """Yield each phrase as a word of the vocabulary, with its count and score, pass by pass, best first."""
        for delimiter, phrases in self.passes:
            for words, facts in phrases.items():
                yield delimiter.join(words), facts

    def apply(self, tokens: Sequence[str]) -> list[str]:
        """Return the tokens of a sentence with phrases joined as in the model's text.

        Parameters
        ----------
        tokens
            The sentence, split by the model's tokenizer.

        Examples
        --------
        >>> import daskw2v
        >>> from daskw2v.models.versions.phrases import BigramScore
        >>> phrases = daskw2v.Phrases((("_", {("new", "york"): BigramScore(occurrences=40, score=0.8)}),))
        >>> phrases.apply("a new york minute".split())
        ['a', 'new_york', 'minute']
        """
        joined = list(tokens)
        for delimiter, phrases in self.passes:
            joined = join_phrases(joined, phrases, delimiter)
        return joined


def describe_phrases(corpus: Corpus) -> list[dict[str, Any]]:
    """Return a description of each pass of a corpus, for a model's manifest."""
    return [
        {name: value for name, value in asdict(phrase_pass).items() if name != "path"} for phrase_pass in corpus.passes
    ]


def write_phrases(store: Store, work: Store, corpus: Corpus) -> None:
    """Copy the phrases of a corpus, if it has any, to the folder of a version, piece by piece.

    `work` is the work directory of the corpus.
    """
    if not corpus.passes:
        return
    copies = create_part(store, _PHRASES)
    for i, phrase_pass in enumerate(corpus.passes):
        for k, piece in enumerate(pieces_of(phrase_pass)):
            source, copy = (work / piece).open_group(), copies.create_group(f"{i}/{k}")
            for name in _ARRAYS:
                write_array(copy, name, read_array(source, name))


def _read_pass(pieces: Iterable[zarr.Group]) -> dict[Bigram, BigramScore]:
    """Return the phrases in the pieces of a pass, best first."""
    phrases = [item for piece in pieces for item in _read_piece(piece)]
    return dict(sorted(phrases, key=lambda item: (-item[1].score, item[0])))


def _read_piece(group: zarr.Group) -> Iterator[tuple[Bigram, BigramScore]]:
    """Return an iterator of the phrases in a piece of a pass; raise StoreError if they are damaged."""
    arrays = {name: read_array(group, name) for name in _ARRAYS}
    words, offsets, counts, scores = arrays.values()
    if (
        any(arrays[name].dtype != dtype or arrays[name].ndim != 1 for name, dtype in _ARRAYS.items())
        or not len(offsets) - 1 == 2 * len(counts) == 2 * len(scores)
        or not are_words(words, offsets)
    ):
        raise _make_error(group)
    content = words.tobytes()
    try:
        decoded = [content[a:b].decode() for a, b in pairwise(offsets.tolist())]
    except UnicodeDecodeError:
        raise _make_error(group) from None
    results = map(BigramScore, counts.tolist(), scores.tolist())
    return zip(zip(decoded[::2], decoded[1::2], strict=True), results, strict=True)


def _make_error(source: Store | zarr.Group) -> StoreError:
    """Return the error for phrases that are damaged."""
    url = source.url if isinstance(source, Store) else f"{source.store}/{source.path}"
    return StoreError(
        f"{url} holds no list of phrases.", "Take the model from a copy, or delete it and run train again."
    )
