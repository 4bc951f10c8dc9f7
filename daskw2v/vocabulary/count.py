"""The words of all shards, counted: the vocabulary of a corpus, the maps from codes to ids, and the corpus as ids."""

import time
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import zarr
from distributed import Client

from daskw2v.cluster.connecting import GetClient, lazily_connected
from daskw2v.cluster.local import trim_heap
from daskw2v.cluster.tasks import run_tasks
from daskw2v.cluster.workers import total_threads, usable_memory
from daskw2v.config.arguments import check_arguments
from daskw2v.config.identity import identity_values
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.errors import ParameterError
from daskw2v.extras import Extra
from daskw2v.progress import Listener, Watching, message_sender, silent
from daskw2v.shards.layout import Corpus, Shard, digest, open_codes
from daskw2v.store.arrays import create_array, open_array, read_array, write_rows
from daskw2v.store.limits import typed
from daskw2v.store.stage import Layout, OpenStage, Stage, groups_exist
from daskw2v.store.storage import MANIFEST, Store
from daskw2v.types import Int32Array, Int64Array, UInt8Array
from daskw2v.vocabulary import buckets
from daskw2v.vocabulary.buckets import STEPS, CountRules, read_shard_paths, run_step_locally, run_steps
from daskw2v.vocabulary.vocabulary import Vocabulary
from daskw2v.vocabulary.word_lists import read_list

dask, da = Extra("dask", "events"), Extra("dask.array", "events")  # loaded when used, and always installed

LAYOUT = Layout("vocabulary/<key>/<build>", unused="vocabulary/<key>")
COPIED_ROWS = 1 << 22  # rows copied at once: whole chunks, 32 MB


@dataclass(frozen=True)
class StoredVocabulary:
    """A vocabulary in a work directory; small, safe to send to a worker.

    Parameters
    ----------
    store
        The work directory.
    key
        Digest of the corpus, its shards and the rules.
    identity
        Digest of the corpus and the rules: the same for the same words, however the text was cut.
    size
        Number of words V.
    total
        Number of known tokens in the corpus: occurrences of the V words.
    raw_words, raw_types
        Number of tokens in the corpus, and of distinct words, before the rules left any out.
    missing, missing_words
        Number of listed words that do not occur in the corpus, and the first of these words.
    build, plan, chosen, maps
        Names of the valid attempts: of the build's folder, and of the folders in it (see `buckets`).
    seconds
        Time to build it.
    """

    store: Store
    key: str
    identity: str
    size: int
    total: int
    raw_words: int
    raw_types: int
    missing: int
    missing_words: tuple[str, ...]
    build: str
    plan: str
    chosen: str
    maps: tuple[str, ...]
    seconds: float = field(default=0.0, compare=False)

    @property
    def folder(self) -> Store:
        """Folder of the build."""
        return self.store / LAYOUT.folder / self.key / self.build

    @property
    def groups(self) -> list[str]:
        """Paths of the vocabulary's Zarr groups, below `folder`."""
        maps = [f"maps/{bucket}/{attempt}" for bucket, attempt in enumerate(self.maps)]
        return [f"plan/{self.plan}", f"chosen/{self.chosen}", *maps]

    def load(self) -> Vocabulary:
        """Read the vocabulary: its words and their counts.

        Raises
        ------
        StoreError
            If the vocabulary is gone.
        """
        return Vocabulary.load(self._open())

    def _open(self) -> zarr.Group:
        """Open the Zarr group of the words and their counts."""
        return (self.folder / "chosen" / self.chosen).open_group()

    def read_counts(self, start: int = 0, stop: int | None = None) -> Int64Array:
        """Read the counts of the words start..stop-1, of all words by default, shape (n,) int64.

        Raises
        ------
        StoreError
            If the vocabulary is gone.
        """
        return read_array(self._open(), "counts", start, stop)

    def between(self, start: int, stop: int) -> tuple[UInt8Array, Int64Array]:
        """Read the n words start..stop-1: their UTF-8, and the words' offsets in it, shape (n + 1,) int64.

        Raises
        ------
        StoreError
            If the vocabulary is gone.
        """
        group = self._open()
        offsets = read_array(group, "offsets", start, stop + 1)
        return read_array(group, "words", int(offsets[0]), int(offsets[-1])), offsets - offsets[0]

    def save(self, group: zarr.Group) -> None:
        """Copy the vocabulary into a group, in the layout of `Vocabulary.save`, `COPIED_ROWS` rows at a time.

        Raises
        ------
        StoreError
            If the vocabulary is gone.
        """
        for name in ("words", "offsets", "counts"):
            source = open_array(self._open(), name)
            copy = create_array(group, name, source.shape, source.dtype, held=True)
            for first in range(0, source.shape[0], COPIED_ROWS):
                write_rows(copy, first, source[first : first + COPIED_ROWS])
            copy.finish()

    def read_map(self, path: str) -> Int32Array:
        """Read the map from a shard's codes to ids: the id of each code, or -1, shape (n_types,) int32.

        Parameters
        ----------
        path
            Path of the shard below the work directory.

        Raises
        ------
        StoreError
            If the map or the shard is gone.
        """
        return self.open_maps().read(path, (self.store / path).open_group())

    def open_maps(self) -> buckets.Maps:
        """Return a reader of the maps from codes to ids, for several shards."""
        return buckets.Maps(self.folder, self.plan, self.maps)


def build_vocabulary(
    corpus: Corpus,
    store: Store,
    params: Params,
    resources: Resources,
    client: Client | None = None,
    listener: Watching = "show",
) -> StoredVocabulary:
    """Count the words of a corpus exactly, select the words to keep, and assign ids.

    Words are numbered by (-count, bytes), so ids do not depend on how the text is cut. A vocabulary that was built
    before is returned.

    Parameters
    ----------
    corpus
        Result of `build_corpus`.
    store
        The work directory of the corpus.
    params
        `min_count` and `max_final_vocab`, or the list `vocabulary`, select the words to keep.
    resources
        Options and timeout of the store of the list, and how to connect without `client`.
    client
        The cluster; by default as in `train`.
    listener
        Called with the progress.

    Raises
    ------
    ParameterError
        If an argument has the wrong type.
    InputError
        If the list of words cannot be read or is empty.
    VocabularyError
        If no word is kept.

    Examples
    --------
    >>> from daskw2v.stages import Store, build_corpus, build_vocabulary
    >>> store, params = Store("stages"), daskw2v.Params(min_count=1)
    >>> how = {"params": params, "resources": daskw2v.Resources(), "listener": None}
    >>> corpus = build_corpus("text.txt", store, **how)
    >>> build_vocabulary(corpus, store, **how).size
    8
    """
    check_arguments(store=store, params=params, resources=resources, client=client)
    with lazily_connected(client, store, resources, listener) as (cluster, listen):
        return count_words(corpus, store, params, resources, cluster, listen)


def count_words(
    corpus: Corpus, store: Store, params: Params, resources: Resources, client: GetClient, listener: Listener
) -> StoredVocabulary:
    """Return the vocabulary of a corpus: the stored one if it is complete, or else a new one.

    Parameters
    ----------
    corpus, store
        The corpus, and its work directory.
    params, resources
        As in `build_vocabulary`.
    client
        Returns the cluster; called only if the vocabulary has to be built.
    listener
        Called with the progress.
    """
    paths = [shard.path for shard in corpus.shards]
    listed = _read_listed(params, resources, listener)
    key, identity = _key_and_identity(corpus, listed, params)
    n_types = sum(shard.n_types for shard in corpus.shards) + len(listed or ())
    limits = (params.min_count, params.max_final_vocab) if listed is None else (1, None)
    rules = CountRules(*limits, listed=listed is not None)

    def build(stage: OpenStage) -> StoredVocabulary:
        """Build the vocabulary in an open stage, and return it."""
        began = time.monotonic()
        folder = stage.attempt()
        folder.write_manifest({"paths": paths}, "shards.json")
        if listed is not None:
            buckets.write_list(folder, listed)
        cluster = client()
        threads = total_threads(cluster)
        n_buckets = buckets.choose_n_buckets(n_types, threads, usable_memory(cluster) / threads)
        fields = _run_steps(stage, folder, store, rules, n_buckets)
        manifest = {"build": folder.name, **fields, "seconds": round(time.monotonic() - began, 3)}
        vocabulary = _from_manifest(store, key, identity, manifest)
        stage.finish(manifest, [f"{folder.name}/{name}" for name in ("shards.json", "listed", *vocabulary.groups)])
        trim_heap()  # of a worker in this process
        return vocabulary

    folder = store / LAYOUT.folder / key
    stage = Stage(store, folder, lambda: partial(run_tasks, client()), listener, "vocabulary", "steps")
    return stage.make(partial(_find, store, key, identity), build)


def find_vocabulary(corpus: Corpus, store: Store, params: Params, resources: Resources) -> StoredVocabulary | None:
    """Return the vocabulary that `build_vocabulary` would return; None if it is not built yet, or not complete."""
    return _find(store, *_key_and_identity(corpus, _read_listed(params, resources), params))


def corpus_ids(corpus: Corpus, vocabulary: StoredVocabulary) -> Any:
    """Return the ids of a corpus as a Dask array, shape (n_tokens,) int32, in order of positions.

    Each chunk has the tokens of one shard, which a worker reads from the work directory when the chunk is computed. The
    numbers of tokens before each shard are `corpus.bounds`.

    Parameters
    ----------
    corpus
        Result of `build_corpus`.
    vocabulary
        Result of `build_vocabulary` for the corpus. Words outside the vocabulary are -1.

    Raises
    ------
    ParameterError
        If the vocabulary is of another corpus.
    StoreError
        If the vocabulary is gone; when the array is computed, if a shard is gone.

    Examples
    --------
    >>> from daskw2v.stages import Store, build_corpus, build_vocabulary, corpus_ids
    >>> store, params = Store("stages"), daskw2v.Params(min_count=1)
    >>> how = {"params": params, "resources": daskw2v.Resources(), "listener": None}
    >>> corpus = build_corpus("text.txt", store, **how)
    >>> vocabulary = build_vocabulary(corpus, store, **how)
    >>> corpus_ids(corpus, vocabulary).compute(scheduler="sync")[:5].tolist()
    [0, 2, 1, 0, 3]
    """
    known = {*read_shard_paths(vocabulary.folder)}
    if unknown := next((shard.path for shard in corpus.shards if shard.path not in known), None):
        problem = f"The vocabulary {vocabulary.key} knows no shard {unknown}."
        raise ParameterError(problem, "Give what build_vocabulary made of the corpus.")
    read, stored = dask.delayed(_read_ids, pure=True), dask.delayed(vocabulary)
    return da.concatenate([da.from_delayed(read(stored, s), (s.n_tokens,), np.int32) for s in corpus.shards])


def _read_listed(params: Params, resources: Resources, listener: Listener = silent) -> list[str] | None:
    """Return the words of the list that Params name; None if they name none."""
    report = message_sender(listener, "vocabulary", "words")
    return None if params.vocabulary is None else read_list(params.vocabulary, resources, report=report)


def _key_and_identity(corpus: Corpus, listed: list[str] | None, params: Params) -> tuple[str, str]:
    """Return `key` and `identity` of the `StoredVocabulary` of a corpus; `listed` is the list of words to keep."""
    unread = ("vocabulary",) if listed is None else ("vocabulary", "min_count", "max_final_vocab")
    rules = [*(listed or ()), *identity_values(params, "vocabulary", without=unread)]
    identity = digest([corpus.identity, rules])
    return digest([identity, [shard.path for shard in corpus.shards]]), identity


def _find(store: Store, key: str, identity: str) -> StoredVocabulary | None:
    """Return the vocabulary with a key in a work directory; None if it is not built yet, or not complete."""
    manifest = (store / LAYOUT.folder / key).read_manifest()
    vocabulary = None if manifest is None else _from_manifest(store, key, identity, manifest)
    return vocabulary if vocabulary and groups_exist(vocabulary.folder, vocabulary.groups) else None


def _from_manifest(store: Store, key: str, identity: str, manifest: dict[str, Any]) -> StoredVocabulary:
    """Return the vocabulary that a manifest describes, with this key, its folder's name, and this identity.

    Neither is compared with the manifest.

    Raises
    ------
    StoreError
        If a field of the manifest is missing, unknown, of another type or out of range.
    """
    values = {name: value for name, value in manifest.items() if name != "format_version"}
    url = f"{store.url}/{LAYOUT.folder}/{key}/{MANIFEST}"
    return typed(StoredVocabulary, values, url, store=store, key=key, identity=identity)


def _run_steps(stage: OpenStage, folder: Store, work: Store, rules: CountRules, n_buckets: int) -> dict[str, Any]:
    """Run all steps of `buckets.run_steps` on the cluster; return the result of `run_steps`."""
    if n_buckets == 1:  # one task for all steps saves five round trips
        stage.expect(1, message="1 bucket")
        (manifest,) = stage.map("vocabulary", run_steps, [(folder, work, rules, 1, run_step_locally)])
        return dict(manifest)
    stage.expect(len(STEPS), message=f"{n_buckets} buckets")
    return run_steps(folder, work, rules, n_buckets, partial(stage.map, size=1))


def _read_ids(vocabulary: StoredVocabulary, shard: Shard) -> Int32Array:
    """Task: return the ids of a shard's tokens, -1 for unknown words, shape (n_tokens,) int32."""
    codes = open_codes(vocabulary.store, shard)[shard.first : shard.first + shard.n_tokens]
    ids: Int32Array = vocabulary.read_map(shard.path)[codes]
    return ids
