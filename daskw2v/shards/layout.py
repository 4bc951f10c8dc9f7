"""The layout of corpora in a work directory: shards of codes with dictionaries, and `corpora/<name>.json`.

A corpus shard is one Zarr group, which one task writes and nothing changes afterwards:

    codes    (n,) int32       the words of the text, numbered by first appearance in the shard
    starts   (s,) int64       index of the first word of each sentence; a shard may begin inside a sentence
    words    (n_bytes,) uint8 bytes of the dictionary's words, sorted by hash >> 52
    offsets  (u + 1,) int64   start of each word in these bytes
    counts   (u,) int64       occurrences of each word in the shard
    places   (u,) int32       index in the dictionary of the word of each code
    edges    (4097,) int32    entry i: number of words with a hash below i * 2**52; cuts the dictionary into buckets

Codes by first appearance compress better than indices in the dictionary (by 18 %), and frequent words have small ones.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import zarr

from daskw2v.config.identity import identity_values
from daskw2v.config.params import Params
from daskw2v.corpus.files import Source
from daskw2v.corpus.pieces import ReadReport
from daskw2v.corpus.tokenizers import tokenizer_identity
from daskw2v.errors import DamageError, StoreError
from daskw2v.shards.dictionary import Dictionary
from daskw2v.shards.words import are_words, take_words
from daskw2v.store.arrays import StoredArray, open_array, read_array, write_array, write_pieces
from daskw2v.store.limits import typed
from daskw2v.store.stage import Layout, groups_exist
from daskw2v.store.storage import Store
from daskw2v.types import Int32Array, Int64Array, UInt8Array

N_EDGES = 1 << 12  # maximum number of buckets of dictionaries
CORPORA = Layout("corpora/<file>", unused="corpora/<file>")
_CODES_CHUNK = 1 << 20  # large, as codes are read in long ranges and large chunks are written faster


@dataclass(frozen=True)
class Shard:
    """One corpus shard.

    Parameters
    ----------
    path
        Path of the shard's group, below the work directory.
    n_tokens, n_sentences, n_types
        Number of tokens, of sentences that start in the shard, of distinct words in its dictionary.
    first
        Index in the stored shard of the shard's first token; not 0 in excerpts, which have parts of stored shards.
    begins
        Whether the shard's first token always starts a sentence, because an excerpt leaves out the text before it.
    block
        Key of the batch of text that the shard was read from.
    """

    path: str
    n_tokens: int
    n_sentences: int
    n_types: int
    first: int = 0
    begins: bool = False
    block: str = ""


@dataclass(frozen=True)
class BatchBlock:
    """A block of text that was read in a batch with other blocks.

    Parameters
    ----------
    batch, block
        Key of the batch, and key of the block.
    n_sentences
        Number of the block's sentences. The sentences of a batch's shards are in the order of the batch's blocks.
    """

    batch: str
    block: str
    n_sentences: int


@dataclass(frozen=True)
class BadBlock:
    """A block of text that was left out, because it could not be read.

    Parameters
    ----------
    url, start, stop
        URL of the file, and the range of bytes or row groups.
    problem
        Why the block could not be read, as a sentence.
    """

    url: str
    start: int
    stop: int
    problem: str


@dataclass(frozen=True)
class PhrasePass:
    """A pass over a corpus that joined bigrams into words.

    Parameters
    ----------
    path, pieces
        Path of the folder of the phrases, below the work directory, and number of groups in it.
    n_phrases, n_bigrams
        Number of phrases, and number of distinct bigrams of the text before the pass.
    min_count, threshold, scoring, delimiter
        Rules of the pass, as in `PhraseDetection`.
    seconds
        Duration of the pass.
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


# Fields of a corpus that are lists in its manifest
_ITEMS = {"shards": Shard, "sources": Source, "bad_blocks": BadBlock, "passes": PhrasePass, "parts": BatchBlock}


@dataclass(frozen=True)
class Corpus:
    """A text that was read: its files, and its shards of codes.

    Parameters
    ----------
    asked
        Digest of the files, and of the rules by which they are read.
    shards
        The shards, in the order of the text. How the text is cut into shards has no meaning.
    sources
        The files, in order.
    report
        Counts of what was read, repaired and skipped.
    seconds
        Time to build the corpus, without blocks that existed before.
    bad_blocks
        Blocks that were left out, as `Params.max_bad_blocks` allows.
    passes
        Passes that joined bigrams, in order.
    parts
        The blocks of batches with several blocks, batch by batch, in order.
    """

    asked: str
    shards: tuple[Shard, ...]
    sources: tuple[Source, ...]
    report: ReadReport
    seconds: float = field(default=0.0, compare=False)
    bad_blocks: tuple[BadBlock, ...] = ()
    passes: tuple[PhrasePass, ...] = ()
    parts: tuple[BatchBlock, ...] = ()

    @cached_property
    def identity(self) -> str:
        """Digest of the text that was read: `asked`, or a digest of `asked` and of the blocks that were left out."""
        left_out = [(block.url, block.start, block.stop) for block in self.bad_blocks]
        return digest([self.asked, left_out]) if left_out else self.asked

    @cached_property
    def name(self) -> str:
        """Name of the corpus's manifest without `.json`: `asked` and a digest of the paths of the shards."""
        return f"{self.asked}-{digest([shard.path for shard in self.shards])}"

    @cached_property
    def bounds(self) -> Int64Array:
        """Position of the first token of each shard, and the number of tokens, shape (shards + 1,) int64."""
        return np.cumsum([0, *(shard.n_tokens for shard in self.shards)], dtype=np.int64)

    @property
    def n_tokens(self) -> int:
        """Number of tokens in the corpus."""
        return int(self.bounds[-1])

    def shards_in(self, start: int, stop: int) -> Iterator[tuple[int, int, int]]:
        """Yield the index of each shard with tokens at positions start..stop-1 of the corpus, and their range in it.

        The range is the index of the first of these tokens in the shard, and the index after the last.
        """
        for number in range(int(np.searchsorted(self.bounds, start, side="right")) - 1, len(self.shards)):
            origin, end = self.bounds[number : number + 2].tolist()
            if origin >= stop:
                return
            a, b = max(start, origin), min(stop, end)
            if a < b:
                yield number, a - origin, b - origin

    def save(self, store: Store) -> None:
        """Write the manifest of the corpus to a work directory."""
        (store / CORPORA.folder).write_manifest(asdict(self), f"{self.name}.json")

    @classmethod
    def load(cls, store: Store, name: str) -> Self:
        """Read the corpus that `save` wrote to a work directory.

        Parameters
        ----------
        store
            The work directory.
        name
            The corpus's attribute `name`.

        Raises
        ------
        DamageError
            If there is no corpus of this name, or its manifest is damaged.
        StoreError
            If the file is not a manifest of a corpus.
        """
        url = f"{store.url}/{CORPORA.folder}/{name}.json"
        values = (store / CORPORA.folder).read_manifest(f"{name}.json")
        if values is None:
            raise DamageError(
                f"{store.url} holds no corpus {name}.", "Build one with build_corpus, or run train.", url=url
            )
        values = {"passes": [], "parts": [], **values}  # earlier releases wrote neither
        match values:
            case {"asked": str(asked), "report": report, "seconds": float(seconds) | int(seconds)} if all(
                isinstance(values.get(name), list) for name in _ITEMS
            ):
                items: dict[str, Any] = {
                    name: tuple(typed(kind, value, url) for value in values[name]) for name, kind in _ITEMS.items()
                }
                return cls(asked=asked, report=typed(ReadReport, report, url), seconds=seconds, **items)
        raise StoreError(f"{url} is not a manifest of a corpus.", "Delete it; the corpus is then built again.")

    @classmethod
    def find(cls, store: Store, asked: str, max_bad_blocks: int = 0) -> Self | None:
        """Return a corpus of a work directory; None if there is none with all its shards and few enough bad blocks.

        Parameters
        ----------
        store
            The work directory.
        asked
            Digest of the files and rules, as the corpus's attribute `asked`.
        max_bad_blocks
            Maximum number of blocks that may be left out.

        Raises
        ------
        StoreError
            As `load` does.
        """
        for file in (store / CORPORA.folder).children():
            if file.startswith(asked):
                corpus = cls.load(store, file.removesuffix(".json"))
                paths = (shard.path for shard in corpus.shards)
                if len(corpus.bad_blocks) <= max_bad_blocks and groups_exist(store, paths):
                    return corpus
        return None


def digest(values: Any) -> str:
    """Return a digest of JSON values, 20 hexadecimal digits."""
    return hashlib.blake2b(json.dumps(values).encode(), digest_size=10).hexdigest()


def corpus_identity(sources: Sequence[Source], params: Params) -> str:
    """Return `Corpus.asked` of files read by the rules of `params`: a digest of all that determines the words."""
    # Blocks that were left out are part of `Corpus.identity`
    rules = identity_values(params, "read", without=("tokenizer", "max_bad_blocks"))
    files = [(source.identity_name, *source.content) for source in sources]
    return digest([files, tokenizer_identity(params.tokenizer), rules])


def write_shard(
    store: Store, codes: Sequence[Int32Array], starts: Int64Array, dictionary: Dictionary
) -> dict[str, int]:
    """Write a shard as a group; return the numbers of its tokens, sentences and types.

    Parameters
    ----------
    store
        Folder of the group.
    codes
        Codes of the tokens, as of `dictionary`, in pieces of any length.
    starts
        Index of the first token of each sentence, shape (s,) int64.
    dictionary
        The shard's words.

    Returns
    -------
    dict
        n_tokens, n_sentences and n_types, as of `Shard`.
    """
    tops = (dictionary.hashes >> np.uint64(64 - (N_EDGES.bit_length() - 1))).astype(np.uint16)
    order = np.argsort(tops, kind="stable")
    word_indices = np.empty(len(order), np.int32)
    word_indices[order] = np.arange(len(order), dtype=np.int32)
    counts = dictionary.counts()[order]
    words, offsets = take_words(dictionary.words, dictionary.offsets, order)
    edges = np.cumsum([0, *np.bincount(tops, minlength=N_EDGES)], dtype=np.int32)
    group = store.create_group()
    write_pieces(group, "codes", codes, _CODES_CHUNK)
    write_arrays(group, starts=starts, words=words, offsets=offsets, counts=counts, places=word_indices, edges=edges)
    return {"n_tokens": sum(map(len, codes)), "n_sentences": len(starts), "n_types": len(order)}


def write_arrays(group: zarr.Group, **arrays: npt.NDArray[Any]) -> None:
    """Write arrays into a Zarr group, each with the name of its keyword argument."""
    for name, values in arrays.items():
        write_array(group, name, values)


def open_codes(store: Store, shard: Shard) -> StoredArray:
    """Open the codes of the stored shard, int32; the codes of `shard` are the `n_tokens` codes from `first` on.

    Raises
    ------
    StoreError
        If the shard is missing.
    """
    return open_array((store / shard.path).open_group(), "codes")


def read_starts(store: Store, shard: Shard) -> Int64Array:
    """Read the index in a shard of the first token of each sentence that starts in the shard, shape (n,) int64.

    Raises
    ------
    StoreError
        If the shard is missing.
    """
    return select_starts(shard, read_array((store / shard.path).open_group(), "starts"))


def select_starts(shard: Shard, stored: Int64Array) -> Int64Array:
    """Return the starts of sentences as indices in a shard, shape (n,) int64.

    Parameters
    ----------
    shard
        The shard, which may be a part of a stored shard.
    stored
        The starts of sentences as indices in the stored shard.
    """
    starts = stored - shard.first
    inside = starts[slice(*np.searchsorted(starts, [0, shard.n_tokens]))]
    return np.insert(inside, 0, 0) if shard.begins and not (len(inside) and inside[0] == 0) else inside


def read_word_indices(store: Store, path: str) -> Int32Array:
    """Read the index in a shard's dictionary of the word of each code, shape (n_types,) int32."""
    return read_array((store / path).open_group(), "places")


def read_edges(store: Store, path: str) -> Int32Array:
    """Read the word indices at which a shard's dictionary can be cut into buckets, shape (N_EDGES + 1,) int32."""
    return read_array((store / path).open_group(), "edges")


def read_words(store: Store, path: str, start: int, stop: int) -> tuple[UInt8Array, Int64Array, Int64Array]:
    """Read the n words start..stop-1 of a shard's dictionary: bytes, offsets (n + 1,) from 0 on, and counts (n,).

    Parameters
    ----------
    store, path
        The work directory, and the path of the shard's group below it.
    start, stop
        Range of indices in the dictionary.

    Raises
    ------
    DamageError
        If the offsets are out of range or order, which kernels do not check.
    StoreError
        If the shard is missing.
    """
    return open_words(store, path).read(start, stop)


class StoredWords(NamedTuple):
    """The dictionary of a shard, opened, which takes longer than to read a range of it: 20 kB."""

    url: str
    words: StoredArray
    offsets: StoredArray
    counts: StoredArray

    def read(self, start: int, stop: int) -> tuple[UInt8Array, Int64Array, Int64Array]:
        """Read the words start..stop-1; results and errors are those of `read_words`."""
        offsets = self.offsets[start : stop + 1]
        words = self.words[int(offsets[0]) : int(offsets[-1])] if len(offsets) else offsets
        if not are_words(words, offsets - offsets[:1]):
            raise DamageError.of(f"{self.url}/offsets", "does not separate the words of a dictionary")
        return words, offsets - offsets[0], self.counts[start:stop]


def open_words(store: Store, path: str) -> StoredWords:
    """Open the dictionary of a shard; arguments and errors are those of `read_words`."""
    group = (store / path).open_group()
    arrays = (open_array(group, name) for name in ("words", "offsets", "counts"))
    return StoredWords(f"{store.url}/{path}", *arrays)
