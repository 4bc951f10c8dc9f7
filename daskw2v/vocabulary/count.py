"""From the shards' dictionaries to one vocabulary, and from their codes to its ids."""

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import zarr
from distributed import Client

from daskw2v.arguments import check_arguments
from daskw2v.console import listening
from daskw2v.corpus.formats import read_file
from daskw2v.errors import InputError
from daskw2v.lease import hold
from daskw2v.params import Params, Resources
from daskw2v.progress import Listener, Progress, Watching, saying
from daskw2v.shards.layout import Corpus, digest, groups_exist
from daskw2v.shards.tasks import new_attempt, remove_losers, run_task, run_tasks
from daskw2v.storage import Store, create_array, open_array, read_array, write_rows
from daskw2v.vocabulary import buckets
from daskw2v.vocabulary.steps import STAGES, call_here, take_steps
from daskw2v.vocabulary.vocabulary import Vocabulary
from daskw2v.wording import counted

_LIST = 1 << 30  # bytes of a list of words: each word takes some 100 bytes of memory
_COPIED = 1 << 22  # rows copied at once: whole chunks, 32 MB


@dataclass(frozen=True)
class StoredVocabulary:
    """A vocabulary in a work directory; small, safe to send to a worker.

    Parameters
    ----------
    store
        The work directory.
    key
        Hexadecimal digits that stand for the corpus, its shards and the rules.
    identity
        The same without the shards: equal for equal words, however the text was cut.
    size
        V, the number of words.
    total
        Occurrences of these words in the corpus.
    raw_words, raw_types
        Words in the corpus, and distinct ones, before any was left out.
    missing, missing_words
        How many listed words the corpus lacks, and the first of them.
    build, plan, chosen, maps
        Attempts that count: the home's name, and what lies there (see `buckets`).
    seconds
        What building it took.
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
    def home(self) -> Store:
        """Where it lies."""
        return self.store / "vocabulary" / self.key / self.build

    def exists(self) -> bool:
        """Tell whether all of it is there."""
        maps = [f"maps/{bucket}/{attempt}" for bucket, attempt in enumerate(self.maps)]
        return groups_exist(self.home, [f"plan/{self.plan}", f"chosen/{self.chosen}", *maps])

    def load(self) -> Vocabulary:
        """Read the words.

        Raises
        ------
        StoreError
            If they are gone.
        """
        return Vocabulary.load(self._words())

    def _words(self) -> zarr.Group:
        return (self.home / "chosen" / self.chosen).open_group()

    def read_counts(self, start: int = 0, stop: int | None = None) -> npt.NDArray[np.int64]:
        """Read the occurrences of words start:stop, of all of them by default.

        Raises
        ------
        StoreError
            If they are gone.
        """
        return read_array(self._words(), "counts", start, stop)

    def save(self, group: zarr.Group) -> None:
        """Write what `load` gives as `Vocabulary.save` does, but little of it at a time.

        Raises
        ------
        StoreError
            If it is gone.
        """
        for name in ("words", "offsets", "counts"):
            source = open_array(self._words(), name)
            copy = create_array(group, name, source.shape, source.dtype)
            for start in range(0, source.shape[0], _COPIED):
                write_rows(copy, start, source[start : start + _COPIED])

    def read_map(self, path: str) -> npt.NDArray[np.int32]:
        """Read what turns a shard's codes into ids: the id of each code, or -1, shape (n_types,) int32.

        Parameters
        ----------
        path
            Where the shard lies, one of those that were counted.

        Raises
        ------
        StoreError
            If it is gone.
        """
        return buckets.read_map(self.home, self.store, self.plan, self.maps, path)


def build_vocabulary(
    corpus: Corpus,
    store: Store,
    params: Params,
    resources: Resources,
    client: Client,
    listener: Watching = "show",
) -> StoredVocabulary:
    """Count the words of a corpus exactly, choose which to keep, and give them ids.

    Ids go by (-count, bytes): they do not depend on how the text is cut. What was built before is returned.

    Parameters
    ----------
    corpus
        From `build_corpus`.
    store
        The work directory that it lies in.
    params, resources
        Which words to keep: `min_count` and `max_final_vocab`, or those of the list `vocabulary`.
    client
        Where to run.
    listener
        Is told the steps done.

    Raises
    ------
    ParameterError
        If an argument is of another kind.
    InputError
        If the list of words cannot be read, or holds none.
    VocabularyError
        If no word is left.
    """
    check_arguments(store=store, params=params, resources=resources, client=client)
    paths = [shard.path for shard in corpus.shards]
    listed = None if params.vocabulary is None else read_list(params.vocabulary, resources)
    rules = [params.min_count, params.max_final_vocab] if listed is None else listed
    identity = digest([corpus.identity, rules])
    key = digest([identity, paths])
    known = _find(store, key, identity)
    if known is not None:
        return known

    with (
        listening(listener, client) as listen,
        hold(store, key, f"the vocabulary in {store.url}", waiting=saying(listen, "vocabulary", "steps")) as lease,
    ):
        known = _find(store, key, identity)  # whom we waited for may have done it
        return known or _build(store, key, identity, paths, listed, corpus, params, client, lease.guarding(listen))


def _find(store: Store, key: str, identity: str) -> StoredVocabulary | None:
    """Return a vocabulary that is there."""
    known = (store / "vocabulary" / key).read_manifest()
    if known is not None:
        vocabulary = _stored(store, key, identity, known)
        if vocabulary.exists():
            return vocabulary
    return None


def _build(
    store: Store,
    key: str,
    identity: str,
    paths: list[str],
    listed: list[str] | None,
    corpus: Corpus,
    params: Params,
    client: Client,
    listener: Listener,
) -> StoredVocabulary:
    began = time.monotonic()
    builds, build = store / "vocabulary" / key, new_attempt()
    builds.remove()  # what a build that was cut short left behind
    home = builds / build
    home.write_manifest({"paths": paths}, "shards.json")
    if listed is not None:
        buckets.write_list(home, listed)
    n_types = sum(shard.n_types for shard in corpus.shards) + len(listed or ())
    limits = (params.min_count, params.max_final_vocab) if listed is None else (1, None)
    kept = buckets.Rules(*limits, listed=listed is not None)
    manifest = {"build": build, **_take_steps(home, store, kept, buckets.count_buckets(n_types), client, listener)}
    manifest["seconds"] = round(time.monotonic() - began, 3)
    builds.write_manifest(manifest)
    for temporary in ("merged", "pieces"):
        (home / temporary).remove()
    maps = {f"maps/{b}": {attempt} for b, attempt in enumerate(manifest["maps"])}
    remove_losers(home, {"plan": {manifest["plan"]}, "chosen": {manifest["chosen"]}, **maps})
    return _stored(store, key, identity, manifest)


def _stored(store: Store, key: str, identity: str, manifest: dict[str, Any]) -> StoredVocabulary:
    values = {name: value for name, value in manifest.items() if name != "format_version"}
    values["missing_words"], values["maps"] = tuple(values["missing_words"]), tuple(values["maps"])
    return StoredVocabulary(store, key, identity, **values)


def _take_steps(
    home: Store, work: Store, rules: buckets.Rules, n_buckets: int, client: Client, listener: Listener
) -> dict[str, Any]:
    """Take all steps on the cluster; return the manifest."""
    if n_buckets == 1:  # little work: one task, without six ways there and back
        listener(Progress("vocabulary", 0, 1, "steps", message="1 bucket"))
        manifest: dict[str, Any] = run_task(client, "vocabulary", take_steps, home, work, rules, 1, call_here)
        listener(Progress("vocabulary", 1, 1, "steps", message="1 bucket"))
        return manifest
    listener(Progress("vocabulary", 0, len(STAGES), "steps", message=f"{n_buckets} buckets"))

    def call(stage: str, function: Any, jobs: list[tuple[Any, ...]]) -> list[Any]:
        results: dict[int, Any] = {}
        for number, result in run_tasks(client, stage, function, dict(enumerate(jobs))):
            results[number] = result
            done = STAGES.index(stage) + len(results) / len(jobs)
            message = f"{stage}: {len(results)} of {counted(len(jobs), 'task')}"
            listener(Progress("vocabulary", done, len(STAGES), "steps", message=message))
        return [results[number] for number in range(len(jobs))]

    return take_steps(home, work, rules, n_buckets, call)


def read_list(url: str, resources: Resources) -> list[str]:
    """Read a list of words, one a line; each counts once."""
    try:
        content = read_file(url, resources.storage_options, _LIST, resources.store_timeout)
        lines = content.decode("utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        raise InputError(
            f"The list of words {url} cannot be read ({error}).", "Give UTF-8 text, one word a line."
        ) from error
    words = list(dict.fromkeys(word for line in lines if (word := line.strip(" \t\r"))))
    if not words:
        raise InputError(f"The list of words {url} is empty.", "Give one word a line.")
    return words
