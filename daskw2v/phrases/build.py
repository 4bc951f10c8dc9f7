"""Corpora with joined phrases, built from a corpus pass by pass."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from distributed import Client

from daskw2v.cluster.connecting import lazily_connected
from daskw2v.cluster.tasks import run_tasks
from daskw2v.config.arguments import check_arguments
from daskw2v.config.identity import identity_values
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.errors import ParameterError
from daskw2v.phrases import tasks
from daskw2v.phrases.bigrams import count_buckets
from daskw2v.phrases.settings import PhraseDetection, n_passes, with_threshold
from daskw2v.phrases.tasks import PhraseJob, finished
from daskw2v.progress import Listener, Watching
from daskw2v.shards.layout import Corpus, PhrasePass, Shard, digest
from daskw2v.store.limits import refused
from daskw2v.store.stage import Layout, OpenStage, Stage, groups_exist
from daskw2v.store.storage import MANIFEST, Store
from daskw2v.vocabulary.count import count_words

_MOST_PIECES = 1 << 16  # of a million phrases each
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
    params, resources
        `phrases` and the `phrase_` options are used.
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
        If an option of phrases is set without phrases, or the threshold is out of range.
    VocabularyError
        If the text has more distinct words than there are ids.

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


def join_phrases(
    corpus: Corpus, store: Store, params: Params, client: Callable[[], Client], listener: Listener
) -> Corpus:
    """Return the corpus with phrases: the stored one, or a new one, for which `client` returns the cluster."""
    for _ in range(n_passes(params)):
        corpus = _join_once(corpus, store, params, client, listener)
    return corpus


def find_phrases(corpus: Corpus, store: Store, params: Params) -> Corpus | None:
    """Return the corpus that `build_phrases` returns if it was built before and is complete."""
    known: Corpus | None = corpus
    for _ in range(n_passes(params)):
        known = None if known is None else _find(store, _asked(known, params), known)
    return known


def check_joined(corpus: Corpus, params: Params) -> None:
    """Refuse a corpus whose phrases were not joined as Params ask for.

    Raises
    ------
    ParameterError
        If it was joined in more or fewer passes, or by other rules.
    """
    detection = PhraseDetection.find(params)
    asked = [] if detection is None else [detection.rules] * detection.passes
    shown = f" with {asked[0]}" if asked else ""
    joined = [(one.min_count, one.threshold, one.scoring, one.delimiter) for one in corpus.passes]
    if joined != asked:
        raise ParameterError(
            f"phrases={len(asked)}{shown}, but the phrases of the corpus were joined with {joined or 'nothing'}.",
            "Give the corpus that build_phrases returns for these Params.",
        )


def _join_once(
    corpus: Corpus, store: Store, params: Params, client: Callable[[], Client], listener: Listener
) -> Corpus:
    rules, began = PhraseDetection.of(params).rules, time.monotonic()
    asked = _asked(corpus, params)
    if (known := _find(store, asked, corpus)) is not None:
        return known
    vocabulary = count_words(corpus, store, Params(min_count=1), Resources(), client, listener)
    n_buckets = count_buckets(corpus.n_tokens)
    # Named by how the text is cut, not by the shards' names, so that counts stay valid for shards that were rebuilt
    key = digest([asked, n_buckets, [shard.n_tokens for shard in corpus.shards]])
    joining = PhraseJob(store, corpus.name, vocabulary, store / LAYOUT.folder / key, rules, n_buckets)
    stage = Stage(store, joining.home, lambda: partial(run_tasks, client()), listener, "phrases")
    return stage.make(partial(_find, store, asked, corpus), partial(_build, asked, corpus, joining, began))


def _asked(corpus: Corpus, params: Params) -> str:
    """Return the digest that names the corpus of the next pass."""
    # Without `phrases`: a pass does not depend on the number of passes
    named = identity_values(with_threshold(params), "phrases", without=("phrases",))
    return digest([corpus.identity, LAYOUT.folder, *named])


def _find(store: Store, asked: str, corpus: Corpus) -> Corpus | None:
    """Return the corpus that an earlier pass made, if it and its list of phrases exist."""
    known = Corpus.find(store, asked, len(corpus.bad_blocks))
    if known is None or not groups_exist(store, pieces_of(known.passes[-1])):
        return None
    # The phrases of earlier passes may have been rebuilt since, at other paths
    return replace(known, passes=(*corpus.passes, known.passes[-1]))


def pieces_of(joined: PhrasePass) -> list[str]:
    """Return the paths of a pass's pieces of phrases, below the work directory.

    Raises
    ------
    StoreError
        If the manifest names more pieces than any text has.
    """
    if joined.pieces > _MOST_PIECES:
        raise refused(f"The list of phrases at {joined.path}", f"has {joined.pieces:,} pieces")
    return [f"{joined.path}/{number}" for number in range(joined.pieces)]


def _build(asked: str, corpus: Corpus, joining: PhraseJob, began: float, stage: OpenStage) -> Corpus:
    home, n_shards = stage.folder, len(corpus.shards)
    joining = replace(joining, home=home)
    chosen = finished(home / "choose" / "0")
    finding = n_shards + joining.n_buckets + 1
    stage.expect(finding + n_shards, 0 if chosen is None else finding)
    if chosen is None:
        chosen = _choose(joining, n_shards, stage)
    path = f"choose/0/{chosen['attempt']}"
    pieces = [f"{path}/{name}" for name in chosen["groups"]]
    parts: list[dict[str, Any]] = []
    if pieces:
        parts = stage.map("join", tasks.join_shard, [(joining, shard, pieces) for shard in range(n_shards)])
    seconds = round(time.monotonic() - began, 3)
    folder, n_phrases = f"{LAYOUT.folder}/{home.name}/{path}", chosen["n_phrases"]
    last = PhrasePass(folder, len(pieces), n_phrases, chosen["n_bigrams"], *joining.rules, seconds)
    shards = _shards(home, corpus.shards, parts) if pieces else corpus.shards
    joined = replace(corpus, asked=asked, shards=shards, passes=(*corpus.passes, last))
    results = {"choose/0": chosen["attempt"], **{f"join/{i}": part["attempt"] for i, part in enumerate(parts)}}
    stage.clean(f"{task}/{name}" for task, attempt in results.items() for name in (MANIFEST, attempt))
    joined.save(stage.guard(joining.work))
    stage.report(finding + n_shards, f"{n_phrases} phrases")
    return joined


def _choose(joining: PhraseJob, n_shards: int, stage: OpenStage) -> dict[str, Any]:
    """Count bigrams, merge the counts and choose phrases; return the manifest of the chosen phrases."""
    counted = stage.map("count", tasks.count_shard, [(joining, shard) for shard in range(n_shards)])
    attempts = [made["attempt"] for made in counted]
    merged = stage.map("merge", tasks.merge_bucket, [(joining, b, attempts) for b in range(joining.n_buckets)])
    attempts, n_bigrams = [made["attempt"] for made in merged], sum(made["n_bigrams"] for made in merged)
    chosen: dict[str, Any]
    (chosen,) = stage.map("choose", tasks.choose_phrases, [(joining, attempts, n_bigrams)])
    return chosen


def _shards(home: Store, shards: Sequence[Shard], parts: Sequence[dict[str, Any]]) -> tuple[Shard, ...]:
    """Return the new shards that the join tasks have written."""
    return tuple(
        Shard(path=f"{LAYOUT.folder}/{home.name}/join/{i}/{part['attempt']}", block=shard.block, **part["shard"])
        for i, (shard, part) in enumerate(zip(shards, parts, strict=True))
        if part["shard"] is not None  # None: the whole shard was the end of a phrase
    )
