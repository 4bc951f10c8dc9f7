"""The steps from the shards' dictionaries to a vocabulary, in one task or on the cluster."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from daskw2v.errors import VocabularyError, counted
from daskw2v.store.storage import Store
from daskw2v.vocabulary import buckets, pieces

Call = Callable[[str, Any, list[tuple[Any, ...]]], list[Any]]  # stage, function, arguments of each call
MOST_WORDS = 2**31 - 1  # ids are int32
STEPS = ("plan", "merge", "cut", "order", "join", "resolve")


def call_here(_: str, function: Any, jobs: list[tuple[Any, ...]]) -> list[Any]:
    """Take a step in this thread: call the function with each job's arguments."""
    return [function(*arguments) for arguments in jobs]


def take_steps(home: Store, work: Store, rules: buckets.CountRules, n_buckets: int, call: Call) -> dict[str, Any]:
    """Take all steps; return the fields of `StoredVocabulary`.

    Parameters
    ----------
    home, work
        Folder of the vocabulary, and work directory of the shards.
    rules
        Rules for the words to keep.
    n_buckets
        Number of buckets, a power of two.
    call
        Takes a step: calls a function with the arguments of each job, here or on the cluster.

    Raises
    ------
    VocabularyError
        If no word is kept, or more than int32 ids allow.
    """
    (plan,) = call("plan", buckets.plan_buckets, [(home, work, n_buckets)])
    merged = call("merge", buckets.merge_bucket, [(home, work, plan, b, rules) for b in range(n_buckets)])
    names, kept = [m["attempt"] for m in merged], [m["n_kept"] for m in merged]
    size = sum(kept) if rules.limit is None else min(rules.limit, sum(kept))
    if not size:
        raise _nothing_left(merged, rules)
    if size > MOST_WORDS:
        raise VocabularyError(
            f"{size} words are kept, more than {MOST_WORDS}.", f"Raise min_count, or give max_final_vocab={MOST_WORDS}."
        )
    splitters = pieces.choose_splitters([key for m in merged for key in m["sample"]], sum(kept))
    cuts = call("cut", pieces.cut_bucket, [(home, b, names[b], kept[b], splitters) for b in range(n_buckets)])
    bounds = np.stack(cuts, axis=1)  # (pieces + 1, buckets)
    sizes = np.diff(bounds, axis=0)
    starts = np.cumsum(sizes, axis=1) - sizes
    n_pieces = int(np.searchsorted(bounds[:-1].sum(axis=1), size))  # pieces that begin before the limit
    ordered = call("order", pieces.order_piece, [(home, p, names, bounds[p : p + 2], size) for p in range(n_pieces)])
    parts = [part["attempt"] for part in ordered]
    (chosen,) = call("join", pieces.join_pieces, [(home, parts, size, sum(part["n_bytes"] for part in ordered))])
    jobs = [(home, b, names[b], parts, bounds[:, b], starts[:, b]) for b in range(n_buckets)]
    missing = sorted(pair for m in merged for pair in m["missing_words"])
    return {
        "size": size,
        "total": sum(part["n_tokens"] for part in ordered),
        "raw_words": sum(m["n_tokens"] for m in merged),
        "raw_types": sum(m["n_types"] for m in merged),
        "missing": sum(m["missing"] for m in merged),
        "missing_words": [word for _, word in missing[: buckets.MISSING_SHOWN]],
        "plan": plan,
        "chosen": chosen,
        "maps": call("resolve", buckets.resolve_bucket, jobs),
    }


def _nothing_left(merged: Sequence[dict[str, Any]], rules: buckets.CountRules) -> VocabularyError:
    if rules.listed:
        return VocabularyError(
            f"None of the {counted(sum(m['missing'] for m in merged), 'word')} of the list occurs in the corpus.",
            "Compare the list's spelling and case with the tokenizer's.",
        )
    return VocabularyError(
        f"No word occurs min_count={rules.min_count} times; the most frequent one occurs "
        f"{counted(max(m['largest'] for m in merged), 'time')}.",
        "Lower min_count or give more text.",
    )
