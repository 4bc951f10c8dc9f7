"""Corpora whose phrases are joined, built from a corpus pass by pass."""

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from distributed import Client

from daskw2v.cluster.connecting import GetClient, lazily_connected
from daskw2v.cluster.tasks import run_tasks
from daskw2v.config.arguments import check_arguments
from daskw2v.config.identity import identity_values
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.errors import ParameterError
from daskw2v.phrases import tasks
from daskw2v.phrases.bigrams import choose_n_buckets
from daskw2v.phrases.settings import PhraseDetection, n_passes, with_threshold
from daskw2v.phrases.tasks import PhraseJob, find_finished
from daskw2v.progress import Listener, Watching
from daskw2v.shards.layout import Corpus, PhrasePass, Shard, digest
from daskw2v.store.limits import refused
from daskw2v.store.stage import Layout, OpenStage, Stage, groups_exist
from daskw2v.store.storage import MANIFEST, Store
from daskw2v.vocabulary.count import count_words

_MAX_PIECES = 1 << 16  # of a million phrases each
LAYOUT = Layout("phrases/<key>/<step>/<number>", unused="phrases/<key>")


def build_phrases(
    corpus: Corpus,
    store: Store,
    params: Params,
    resources: Resources,
    client: Client | None = None,
    listener: Watching = "show",
) -> Corpus:
    """Find the phrases of a corpus and join them, in the passes of `params.phrases`, each on the result of the last.

    Bigrams are counted exactly. Phrases and joins do not depend on how the text is cut. A corpus that was built before
    is returned; an interrupted build resumes, shard by shard.

    Parameters
    ----------
    corpus
        Result of `build_corpus`.
    store
        The work directory of the corpus.
    params
        `phrases` and the `phrase_` options are used.
    resources
        How to connect without `client`.
    client
        The cluster; by default as in `train`.
    listener
        Called with the progress.

    Returns
    -------
    Corpus
        The corpus with phrases, saved in the work directory. Without passes, the corpus as it is.

    Raises
    ------
    ParameterError
        If an argument has the wrong type.
    VocabularyError
        If the text has no words, or more distinct words than there are ids.

    Examples
    --------
    >>> from daskw2v.stages import Store, build_corpus, build_phrases
    >>> store, params = Store("stages"), daskw2v.Params(min_count=1, phrases=1)
    >>> how = {"params": params, "resources": daskw2v.Resources(), "listener": None}
    >>> corpus = build_corpus("text.txt", store, **how)
    >>> joined = build_phrases(corpus, store, **how)
    >>> len(joined.passes), joined.n_tokens <= corpus.n_tokens
    (1, True)
    """
    check_arguments(store=store, params=params, resources=resources, client=client)
    with lazily_connected(client, store, resources, listener) as (cluster, listen):
        return join_phrases(corpus, store, params, cluster, listen)


def join_phrases(corpus: Corpus, store: Store, params: Params, client: GetClient, listener: Listener) -> Corpus:
    """Return the corpus with its phrases joined in all passes: the stored one if it is complete, or else a new one.

    Parameters
    ----------
    corpus, store, params
        As in `build_phrases`.
    client
        Returns the cluster; called only if a pass has to be made.
    listener
        Called with the progress.
    """
    for _ in range(n_passes(params)):
        corpus = _join_once(corpus, store, params, client, listener)
    return corpus


def find_phrases(corpus: Corpus, store: Store, params: Params) -> Corpus | None:
    """Return the corpus that `build_phrases` would return; None if a pass is not built yet, or not complete."""
    joined: Corpus | None = corpus
    for _ in range(n_passes(params)):
        joined = None if joined is None else _find(store, _next_asked(joined, params), joined)
    return joined


def check_joined(corpus: Corpus, params: Params) -> None:
    """Refuse a corpus whose phrases were not joined as Params say.

    Raises
    ------
    ParameterError
        If the phrases were joined in more or fewer passes, or by other rules.
    """
    detection = PhraseDetection.find(params)
    rules = [] if detection is None else [detection.rules] * detection.passes
    shown = f" with {rules[0]}" if rules else ""
    joined = [(one.min_count, one.threshold, one.scoring, one.delimiter) for one in corpus.passes]
    if joined != rules:
        problem = f"phrases={len(rules)}{shown}, but the phrases of the corpus were joined with {joined or 'nothing'}."
        raise ParameterError(problem, "Give the corpus that build_phrases returns for these Params.")


def _join_once(corpus: Corpus, store: Store, params: Params, client: GetClient, listener: Listener) -> Corpus:
    """Return the corpus after one more pass: the stored one, or a new one; arguments are as in `join_phrases`."""
    rules, began = PhraseDetection.of(params).rules, time.monotonic()
    asked = _next_asked(corpus, params)
    if (joined := _find(store, asked, corpus)) is not None:
        return joined
    vocabulary = count_words(corpus, store, Params(min_count=1), Resources(), client, listener)
    n_buckets = choose_n_buckets(corpus.n_tokens)
    # Named by how the text is cut, not by the shards' names, so that counts stay valid for shards that were rebuilt
    key = digest([asked, n_buckets, [shard.n_tokens for shard in corpus.shards]])
    job = PhraseJob(store, corpus.name, vocabulary, store / LAYOUT.folder / key, rules, n_buckets)
    stage = Stage(store, job.folder, lambda: partial(run_tasks, client()), listener, "phrases")
    return stage.make(partial(_find, store, asked, corpus), partial(_build, asked, corpus, job, began))


def _next_asked(corpus: Corpus, params: Params) -> str:
    """Return the digest `Corpus.asked` of the corpus that the next pass makes of a corpus."""
    # Without `phrases`: a pass does not depend on the number of passes
    values = identity_values(with_threshold(params), "phrases", without=("phrases",))
    return digest([corpus.identity, LAYOUT.folder, *values])


def _find(store: Store, asked: str, corpus: Corpus) -> Corpus | None:
    """Return the corpus with the digest `asked` that a pass made of `corpus`; None if it or its phrases are missing."""
    joined = Corpus.find(store, asked, len(corpus.bad_blocks))
    if joined is None or not groups_exist(store, pieces_of(joined.passes[-1])):
        return None
    # The phrases of earlier passes may have been rebuilt since, at other paths
    return replace(joined, passes=(*corpus.passes, joined.passes[-1]))


def pieces_of(joined: PhrasePass) -> list[str]:
    """Return the paths, below the work directory, of the groups that hold the phrases of a pass.

    Raises
    ------
    StoreError
        If the pass names more groups than any text has.
    """
    if joined.pieces > _MAX_PIECES:
        raise refused(f"The list of phrases at {joined.path}", f"has {joined.pieces:,} pieces")
    return [f"{joined.path}/{number}" for number in range(joined.pieces)]


def _build(asked: str, corpus: Corpus, job: PhraseJob, began: float, stage: OpenStage) -> Corpus:
    """Find and join the phrases of a pass, or what is missing of it; return the new corpus, which is saved.

    Parameters
    ----------
    asked
        Digest of the new corpus.
    corpus, job
        The old corpus, and the arguments of the tasks.
    began
        Time by `time.monotonic` at which the pass began.
    stage
        The open stage.
    """
    folder, n_shards = stage.folder, len(corpus.shards)
    job = replace(job, folder=folder)
    chosen = find_finished(folder / "choose" / "0")
    n_choosing = n_shards + job.n_buckets + 1  # tasks that find the phrases
    stage.expect(n_choosing + n_shards, 0 if chosen is None else n_choosing)
    if chosen is None:
        chosen = _choose(job, n_shards, stage)
    path = f"choose/0/{chosen['attempt']}"
    pieces = [f"{path}/{name}" for name in chosen["groups"]]
    parts: list[dict[str, Any]] = []
    if pieces:
        parts = stage.map("join", tasks.join_shard, [(job, shard, pieces) for shard in range(n_shards)])
    seconds = round(time.monotonic() - began, 3)
    phrases_path, n_phrases = f"{LAYOUT.folder}/{folder.name}/{path}", chosen["n_phrases"]
    last = PhrasePass(phrases_path, len(pieces), n_phrases, chosen["n_bigrams"], *job.rules, seconds)
    shards = _joined_shards(folder, corpus.shards, parts) if pieces else corpus.shards
    joined = replace(corpus, asked=asked, shards=shards, passes=(*corpus.passes, last))
    results = {"choose/0": chosen["attempt"], **{f"join/{i}": part["attempt"] for i, part in enumerate(parts)}}
    stage.clean(f"{task}/{name}" for task, attempt in results.items() for name in (MANIFEST, attempt))
    joined.save(stage.guard(job.work))
    stage.report(n_choosing + n_shards, f"{n_phrases} phrases")
    return joined


def _choose(job: PhraseJob, n_shards: int, stage: OpenStage) -> dict[str, Any]:
    """Count bigrams, merge the counts and choose phrases; return the manifest of `tasks.choose_phrases`."""
    counted = stage.map("count", tasks.count_shard, [(job, shard) for shard in range(n_shards)])
    attempts = [result["attempt"] for result in counted]
    merged = stage.map("merge", tasks.merge_bucket, [(job, b, attempts) for b in range(job.n_buckets)])
    attempts, n_bigrams = [result["attempt"] for result in merged], sum(result["n_bigrams"] for result in merged)
    chosen: dict[str, Any]
    (chosen,) = stage.map("choose", tasks.choose_phrases, [(job, attempts, n_bigrams)])
    return chosen


def _joined_shards(folder: Store, shards: Sequence[Shard], parts: Sequence[dict[str, Any]]) -> tuple[Shard, ...]:
    """Return the shards that the tasks of `tasks.join_shard` have written.

    Parameters
    ----------
    folder
        Folder of the pass.
    shards, parts
        The shards of the old corpus, and the result of each shard's task.
    """
    return tuple(
        Shard(path=f"{LAYOUT.folder}/{folder.name}/join/{i}/{part['attempt']}", block=shard.block, **part["shard"])
        for i, (shard, part) in enumerate(zip(shards, parts, strict=True))
        if part["shard"] is not None  # None: all of the shard was the end of a phrase
    )
