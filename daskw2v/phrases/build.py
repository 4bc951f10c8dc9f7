"""From a corpus to the same corpus with phrases for words, pass by pass."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from distributed import Client

from daskw2v.arguments import check_arguments
from daskw2v.console import listening
from daskw2v.errors import ParameterError
from daskw2v.lease import hold
from daskw2v.params import Params, Resources
from daskw2v.phrases import tasks
from daskw2v.phrases.bigrams import count_buckets
from daskw2v.phrases.score import Rules, check_phrases
from daskw2v.phrases.tasks import Pass, finished
from daskw2v.progress import Listener, Progress, Watching, saying
from daskw2v.shards.layout import Corpus, PhrasePass, Shard, digest, groups_exist
from daskw2v.shards.tasks import remove_losers, run_tasks
from daskw2v.storage import Store
from daskw2v.vocabulary.count import build_vocabulary
from daskw2v.wording import counted

HOME = "phrases"
Call = Callable[[str, Callable[..., Any], Sequence[tuple[Any, ...]]], list[dict[str, Any]]]


def build_phrases(
    corpus: Corpus,
    store: Store,
    params: Params,
    resources: Resources,
    client: Client,
    listener: Watching = "show",
) -> Corpus:
    """Find the phrases of a corpus, and join them: `params.phrases` times, each on what the one before has left.

    Bigrams are counted exactly. Which are phrases and where they are joined does not depend on how the text is cut.
    What was built before is returned; what was cut short goes on shard by shard.

    Parameters
    ----------
    corpus
        From `build_corpus`.
    store
        The work directory that it lies in.
    params, resources
        What a phrase is: `phrases` and the `phrase_` options.
    client
        Where to run.
    listener
        Is told the tasks done.

    Returns
    -------
    Corpus
        Saved in the work directory too; without passes the one given.

    Raises
    ------
    ParameterError
        If an option of phrases would not be read, or the threshold means nothing.
    VocabularyError
        If the text has more distinct words than ids can tell apart.
    """
    check_arguments(store=store, params=params, resources=resources, client=client)
    check_phrases(params)
    with listening(listener, client) as listen:
        for _ in range(params.phrases):
            corpus = _join_once(corpus, store, params, resources, client, listen)
    return corpus


def check_joined(corpus: Corpus, params: Params) -> None:
    """Refuse a corpus in which other phrases are joined than Params ask for.

    Raises
    ------
    ParameterError
        If it was joined in more or fewer passes, or by other rules.
    """
    rules = Rules.of(params)
    joined = [(found.min_count, found.threshold, found.scoring, found.delimiter) for found in corpus.passes]
    if joined != [rules] * params.phrases:
        raise ParameterError(
            f"phrases={params.phrases} by {rules}, but the phrases of the corpus are joined by {joined or 'nothing'}.",
            "Give the corpus that build_phrases returns for these Params.",
        )


def _join_once(
    corpus: Corpus, store: Store, params: Params, resources: Resources, client: Client, listener: Listener
) -> Corpus:
    rules = Rules.of(params)
    asked = digest([corpus.identity, HOME, *rules])

    def join(listen: Listener) -> Corpus:
        began = time.monotonic()
        vocabulary = build_vocabulary(corpus, store, Params(min_count=1), resources, client, listen)
        n_buckets = count_buckets(corpus.n_tokens)
        # By the cut, and not by the shards' names: of those that had to be made again the counts still hold
        key = digest([asked, n_buckets, [shard.n_tokens for shard in corpus.shards]])
        joining = Pass(store, corpus.name, vocabulary, store / HOME / key, rules, n_buckets)
        return _build(asked, corpus, joining, began, client, listen)

    known = _find(store, asked, corpus)
    if known is not None:
        return known
    waiting = saying(listener, "phrases", "tasks")
    with hold(store, asked, f"the phrases in {store.url}", waiting=waiting) as lease:
        # Whom we waited for may have done it
        return _find(store, asked, corpus) or join(lease.guarding(listener))


def _find(store: Store, asked: str, corpus: Corpus) -> Corpus | None:
    """Return what a pass over a corpus has made, where it is there with the phrases that were joined."""
    known = Corpus.find(store, asked, len(corpus.bad_blocks))
    if known is not None and groups_exist(store, pieces_of(known.passes[-1])):
        # Lists of passes before may have been made again since, elsewhere
        return replace(known, passes=(*corpus.passes, known.passes[-1]))
    return None


def pieces_of(found: PhrasePass) -> list[str]:
    """Return where the pieces of a pass' phrases lie, below the work directory."""
    return [f"{found.path}/{number}" for number in range(found.pieces)]


def _build(asked: str, corpus: Corpus, joining: Pass, began: float, client: Client, listener: Listener) -> Corpus:
    home, n_shards = joining.home, len(corpus.shards)
    chosen = finished(home / "choose" / "0")
    finding = n_shards + joining.n_buckets + 1
    call = _caller(client, listener, 0 if chosen is None else finding, finding + n_shards)
    if chosen is None:
        chosen = _choose(joining, n_shards, call)
    path = f"choose/0/{chosen['attempt']}"
    pieces = [f"{path}/{name}" for name in chosen["groups"]]
    shards = _join(joining, corpus.shards, pieces, call) if pieces else corpus.shards
    seconds = round(time.monotonic() - began, 3)
    found = PhrasePass(
        f"{HOME}/{home.name}/{path}", len(pieces), chosen["n_phrases"], chosen["n_bigrams"], *joining.rules, seconds
    )
    passes = (*corpus.passes, found)
    joined = Corpus(asked, shards, corpus.sources, corpus.report, corpus.seconds, corpus.bad_blocks, passes)
    joined.save(joining.work)
    remove_losers(home / "choose", {"0": {chosen["attempt"]}})
    for temporary in ("count", "merge"):
        (home / temporary).remove()
    message = f"{found.n_phrases} phrases"
    listener(Progress("phrases", finding + n_shards, finding + n_shards, "tasks", message=message))
    return joined


def _caller(client: Client, listener: Listener, done: int, total: int) -> Call:
    """Return what runs a step of many tasks, and tells how many of all are done."""

    def call(step: str, function: Callable[..., Any], jobs: Sequence[tuple[Any, ...]]) -> list[dict[str, Any]]:
        nonlocal done
        results: dict[int, dict[str, Any]] = {}
        for number, result in run_tasks(client, step, function, dict(enumerate(jobs))):
            results[number], done = result, done + 1
            listener(
                Progress(
                    "phrases", done, total, "tasks", message=f"{step}: {len(results)} of {counted(len(jobs), 'task')}"
                )
            )
        return [results[number] for number in range(len(jobs))]

    listener(Progress("phrases", done, total, "tasks"))
    return call


def _choose(joining: Pass, n_shards: int, call: Call) -> dict[str, Any]:
    """Count, merge and choose; return what the last of it tells."""
    counted = call("count", tasks.count_shard, [(joining, shard) for shard in range(n_shards)])
    attempts = [made["attempt"] for made in counted]
    merged = call("merge", tasks.merge_bucket, [(joining, b, attempts) for b in range(joining.n_buckets)])
    attempts, n_bigrams = [made["attempt"] for made in merged], sum(made["n_bigrams"] for made in merged)
    (chosen,) = call("choose", tasks.choose_phrases, [(joining, attempts, n_bigrams)])
    return chosen


def _join(joining: Pass, shards: Sequence[Shard], pieces: Sequence[str], call: Call) -> tuple[Shard, ...]:
    """Join the phrases that lie in pieces; return the new shards."""
    parts = call("join", tasks.join_shard, [(joining, shard, pieces) for shard in range(len(shards))])
    remove_losers(joining.home / "join", {str(i): {part["attempt"]} for i, part in enumerate(parts)})
    return tuple(
        Shard(path=f"{HOME}/{joining.home.name}/join/{i}/{part['attempt']}", block=shard.block, **part["shard"])
        for i, (shard, part) in enumerate(zip(shards, parts, strict=True))
        if part["shard"] is not None  # all of it was the end of a phrase
    )
