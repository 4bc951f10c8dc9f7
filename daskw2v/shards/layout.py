"""How corpora lie in a work directory: shards of codes with their dictionaries, and `corpora/<name>.json`.

A corpus shard is one Zarr group, written whole by one task and never changed:

    codes    (n,) int32       the words of the text, numbered by first appearance in the shard
    starts   (s,) int64       where sentences start; a shard may begin inside one of the shard before
    words    (n_bytes,) uint8 the dictionary, in order of its words' hashes >> 52: flat bytes,
    offsets  (u + 1,) int64   where each word starts in them,
    counts   (u,) int64       how often it occurs in the shard
    places   (u,) int32       where the word of each code stands in the dictionary
    edges    (4097,) int32    entry i: words whose hash is below i * 2**52; cuts the dictionary into buckets

Codes by first appearance compress better than places (by 18 %), and their frequent words lie close together.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from daskw2v.corpus.pieces import ReadReport
from daskw2v.corpus.sources import Source
from daskw2v.corpus.tokenizers import tokenizer_identity
from daskw2v.errors import DamageError, StoreError
from daskw2v.intact import StoredArray
from daskw2v.limits import typed
from daskw2v.params import Params
from daskw2v.shards.dictionary import Dictionary, are_words, take_words
from daskw2v.storage import Store, open_array, read_array, write_array

N_EDGES = 1 << 12  # most buckets that dictionaries can be cut into
_MANIFESTS = "corpora"
_THREADS = 16  # that look for groups, which mostly wait
_CODES_CHUNK = 1 << 20  # codes are read in long runs: larger chunks are written faster


@dataclass(frozen=True)
class Shard:
    """One corpus shard.

    Parameters
    ----------
    path
        Where it lies, below the work directory.
    n_tokens, n_sentences, n_types
        Words in it, sentences that start in it, distinct words in its dictionary.
    first
        Where in what is stored it begins: excerpts have parts of shards.
    begins
        Whether its first word begins a sentence in any case, since what stands before it is not there.
    block
        Key of the block of text that it was read from.
    """

    path: str
    n_tokens: int
    n_sentences: int
    n_types: int
    first: int = 0
    begins: bool = False
    block: str = ""


@dataclass(frozen=True)
class BadBlock:
    """A block of text that was left out.

    Parameters
    ----------
    url, start, stop
        The file, and the bytes or row groups of it.
    problem
        Why.
    """

    url: str
    start: int
    stop: int
    problem: str


@dataclass(frozen=True)
class PhrasePass:
    """A pass over a corpus that made words of bigrams.

    Parameters
    ----------
    path, pieces
        Where the phrases lie, below the work directory, and how many pieces they are cut into.
    n_phrases, n_bigrams
        Phrases, and distinct bigrams that they were chosen from.
    min_count, threshold, scoring, delimiter
        By what rules, as in `Params`.
    seconds
        What it took.
    """

    path: str
    pieces: int
    n_phrases: int
    n_bigrams: int
    min_count: int
    threshold: float
    scoring: str
    delimiter: str
    seconds: float = field(default=0.0, compare=False)


@dataclass(frozen=True)
class Corpus:
    """All shards, in the order of the text.

    Parameters
    ----------
    asked
        Hexadecimal digits, the same exactly where the same text is to be read the same way.
    shards
        The shards; how the text is cut into them has no meaning.
    sources
        The files read.
    report
        What was read, repaired and left out.
    seconds
        What building it took, without blocks that were there before.
    bad_blocks
        What was left out of the text, as `Params.max_bad_blocks` allows.
    passes
        What made words of bigrams since the text was read.
    """

    asked: str
    shards: tuple[Shard, ...]
    sources: tuple[Source, ...]
    report: ReadReport
    seconds: float = field(default=0.0, compare=False)
    bad_blocks: tuple[BadBlock, ...] = ()
    passes: tuple[PhrasePass, ...] = ()

    @cached_property
    def identity(self) -> str:
        """Hexadecimal digits, the same exactly where the same text was read the same way."""
        left_out = [(block.url, block.start, block.stop) for block in self.bad_blocks]
        return digest([self.asked, left_out]) if left_out else self.asked

    @cached_property
    def name(self) -> str:
        """What it is saved as: what was asked for, and digits that stand for the very shards."""
        return f"{self.asked}-{digest([shard.path for shard in self.shards])}"

    @cached_property
    def bounds(self) -> npt.NDArray[np.int64]:
        """Position of each shard's first word, and the number of words, shape (shards + 1,) int64."""
        return np.cumsum([0, *(shard.n_tokens for shard in self.shards)], dtype=np.int64)

    @property
    def n_tokens(self) -> int:
        """Words in the corpus."""
        return int(self.bounds[-1])

    def save(self, store: Store) -> None:
        """Write the manifest into a work directory, beside those of other corpora."""
        (store / _MANIFESTS).write_manifest(asdict(self), f"{self.name}.json")

    @classmethod
    def load(cls, store: Store, name: str) -> Self:
        """Read what `save` wrote.

        Parameters
        ----------
        store
            The work directory.
        name
            The corpus' `name`.

        Raises
        ------
        DamageError
            If there is none of that name, or it is damaged.
        StoreError
            If it is no manifest of a corpus.
        """
        place = f"{store.url}/{_MANIFESTS}/{name}.json"
        values = (store / _MANIFESTS).read_manifest(f"{name}.json")
        if values is None:
            raise DamageError(
                f"{store.url} holds no corpus {name}.", "Build one with build_corpus, or run train.", url=place
            )
        match values:
            case {
                "asked": str(asked),
                "shards": [*shards],
                "sources": [*sources],
                "report": report,
                "seconds": float(seconds) | int(seconds),
                "bad_blocks": [*blocks],
            }:
                return cls(
                    asked,
                    tuple(typed(Shard, shard, place) for shard in shards),
                    tuple(typed(Source, source, place) for source in sources),
                    typed(ReadReport, report, place),
                    seconds,
                    tuple(typed(BadBlock, block, place) for block in blocks),
                    tuple(
                        typed(PhrasePass, value, place) for value in values.get("passes", ())
                    ),  # older ones have none
                )
        raise StoreError(f"{place} is no manifest of a corpus.", "Delete it: the corpus is built again.")

    @classmethod
    def find(cls, store: Store, asked: str, max_bad_blocks: int = 0) -> Self | None:
        """Return the corpus that is asked for, if its shards are all there and few enough blocks left out, or None."""
        for file in (store / _MANIFESTS).children():
            if file.startswith(asked):
                corpus = cls.load(store, file.removesuffix(".json"))
                paths = (shard.path for shard in corpus.shards)
                if len(corpus.bad_blocks) <= max_bad_blocks and groups_exist(store, paths):
                    return corpus
        return None


def digest(values: Any) -> str:
    """Return 20 hexadecimal digits that stand for JSON values."""
    return hashlib.blake2b(json.dumps(values).encode(), digest_size=10).hexdigest()


def corpus_identity(sources: Sequence[Source], params: Params) -> str:
    """Return the identity of files read by the rules of `params`: all that changes the words, no more."""
    values = params.as_dict()
    rules = [values[name] for name in ("format", "column", "errors")]
    return digest([[(s.url, s.size, s.version) for s in sources], tokenizer_identity(params.tokenizer), rules])


def groups_exist(store: Store, paths: Iterable[str]) -> bool:
    """Tell whether Zarr groups lie at all these paths below a store."""
    with ThreadPoolExecutor(_THREADS) as pool:
        # Read, not listed: listings may come from a cache that knows nothing of what others deleted.
        return all(pool.map(lambda path: (store / path).read_bytes("zarr.json") is not None, set(paths)))


def write_shard(
    store: Store,
    codes: Sequence[npt.NDArray[np.int32]],
    starts: npt.NDArray[np.int64],
    dictionary: Dictionary,
) -> dict[str, int]:
    """Write a shard.

    Parameters
    ----------
    store
        Where the group shall lie.
    codes
        Codes of `dictionary`, in pieces of any length.
    starts
        Where sentences start, shape (s,) int64.
    dictionary
        The shard's words.

    Returns
    -------
    dict
        n_tokens, n_sentences and n_types.
    """
    tops = (dictionary.hashes >> np.uint64(64 - (N_EDGES.bit_length() - 1))).astype(np.uint16)
    order = np.argsort(tops, kind="stable")
    places = np.empty(len(order), np.int32)
    places[order] = np.arange(len(order), dtype=np.int32)
    flat = np.concatenate(codes)
    words, offsets = take_words(dictionary.words, dictionary.offsets, order)
    edges = np.cumsum([0, *np.bincount(tops, minlength=N_EDGES)], dtype=np.int32)
    group = store.create_group()
    write_array(group, "codes", flat, chunk_rows=_CODES_CHUNK)
    write_array(group, "starts", starts)
    write_array(group, "words", words)
    write_array(group, "offsets", offsets)
    write_array(group, "counts", dictionary.counts()[order])
    write_array(group, "places", places)
    write_array(group, "edges", edges)
    return {"n_tokens": len(flat), "n_sentences": len(starts), "n_types": len(order)}


def open_codes(store: Store, shard: Shard) -> StoredArray:
    """Open the words that are stored, codes of the shard's dictionary, int32: its own are the n_tokens from `first` on.

    Raises
    ------
    StoreError
        If the shard is gone.
    """
    return open_array((store / shard.path).open_group(), "codes")


def read_starts(store: Store, shard: Shard) -> npt.NDArray[np.int64]:
    """Read where sentences start among a shard's words, shape (n,) int64.

    Raises
    ------
    StoreError
        If the shard is gone.
    """
    return own_starts(shard, read_array((store / shard.path).open_group(), "starts"))


def own_starts(shard: Shard, stored: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return where sentences start among a shard's words, shape (n,) int64, of what is stored where it lies."""
    starts = stored - shard.first
    inside = starts[slice(*np.searchsorted(starts, [0, shard.n_tokens]))]
    return np.insert(inside, 0, 0) if shard.begins and not (len(inside) and inside[0] == 0) else inside


def read_places(store: Store, path: str) -> npt.NDArray[np.int32]:
    """Read where the word of each code of a shard stands in its dictionary, shape (n_types,) int32."""
    return read_array((store / path).open_group(), "places")


def read_edges(store: Store, path: str) -> npt.NDArray[np.int32]:
    """Read where a shard's dictionary can be cut, shape (N_EDGES + 1,) int32."""
    return read_array((store / path).open_group(), "edges")


def read_words(
    store: Store, path: str, start: int, stop: int
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Read n words, start:stop, of a shard's dictionary: flat bytes, offsets (n + 1,), counts (n,).

    Raises
    ------
    DamageError
        If the offsets do not part its words: kernels, which trust them, would read elsewhere.
    StoreError
        If the shard is gone.
    """
    group = (store / path).open_group()
    offsets = read_array(group, "offsets", start, stop + 1)
    words = read_array(group, "words", int(offsets[0]), int(offsets[-1])) if len(offsets) else offsets
    if not are_words(words, offsets - offsets[:1]):
        raise DamageError.of(f"{store.url}/{path}/offsets", "does not part the words of a dictionary")
    return words, offsets - offsets[0], read_array(group, "counts", start, stop)
