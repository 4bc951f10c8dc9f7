"""Extends an earlier word-context matrix: finds the text that is new, and merges two samples.

The contexts of a row are in random order. So a row of all text is a random merge of the old and the new row: the next
context is an old one with the probability of old pairs among the remaining pairs. This needs only the number of pairs
of each row, not the old pairs that were not sampled.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from daskw2v.config.identity import identity_fields
from daskw2v.config.params import Params
from daskw2v.config.settings import default_of
from daskw2v.corpus.files import Source
from daskw2v.errors import InputError, ParameterError, VocabularyError, counted
from daskw2v.kernels.jit import kernel
from daskw2v.kernels.rng import draw
from daskw2v.sampling.settings import SampledContexts
from daskw2v.shards.layout import Corpus, corpus_identity
from daskw2v.types import Int32Array
from daskw2v.vocabulary.vocabulary import Vocabulary

_OWN = ("seed", "base_matrix")  # fields in which a matrix and its base may differ


def sampling_rules(params: Params) -> dict[str, Any]:
    """Return the fields that must be equal in a matrix and its base, as JSON types."""
    rules = identity_fields(params, "matrix", without=_OWN)
    return {"context_size": rules["context_size"], **rules}  # in the order of the first release


def check_rules(base: Mapping[str, Any], params: Params) -> None:
    """Refuse a base whose manifest has other sampling rules than the Params.

    Raises
    ------
    ParameterError
        If one of the `sampling_rules` differs.
    """
    name = SampledContexts.of(params).base_matrix
    for f, value in params.items():
        if f.metadata["stage"] == "matrix" and f.name not in _OWN:
            made = base.get(f.name, default_of(f))
            if value != made:
                raise ParameterError(
                    f"{f.name}={value!r}, but base_matrix={name!r} was made with {made!r}.",
                    f"Give {f.name}={made!r}, or leave base_matrix out and read all text again.",
                )


def describe_text(identity: str, sources: Sequence[Source], tokens: int, params: Params) -> dict[str, Any]:
    """Return a description of a matrix's text as JSON types, for its manifest and `find_new_text`.

    Parameters
    ----------
    identity
        `corpus_identity` of the sources.
    sources, tokens
        The files in order, and their number of tokens.
    params
        The Params for reading them.
    """
    reading = corpus_identity((), params)  # the rules alone
    files = [asdict(source) for source in sources]
    return {"identity": identity, "reading": reading, "tokens": tokens, "sources": files}


def find_new_text(seen: Mapping[str, Any], corpus: Corpus, params: Params) -> tuple[int, dict[str, Any]]:
    """Find the text that is new since a base: the rest of a corpus that begins with its text, or all of another corpus.

    Parameters
    ----------
    seen
        The base's text, from `describe_text`.
    corpus, params
        The corpus, and the Params for reading it.

    Returns
    -------
    start, text
        The first new position; and the text of base and corpus together, as in `describe_text`.

    Raises
    ------
    InputError
        If base and corpus share files, but the corpus does not begin with the base's text.
    ParameterError
        If the new files are read by other rules.
    """
    sources, n = [Source(**source) for source in seen["sources"]], len(seen["sources"])
    if corpus_identity(corpus.sources[:n], params) == seen["identity"]:
        return seen["tokens"], describe_text(corpus.identity, corpus.sources, corpus.n_tokens, params)
    urls = {source.url for source in sources}
    shared, base = (
        [source.url for source in corpus.sources if source.url in urls],
        SampledContexts.of(params).base_matrix,
    )
    if shared:
        raise InputError(
            f"{shared[0]} is in the text of base_matrix={base!r}, but the corpus does not begin with all of "
            f"that text ({counted(n, 'file')}, read by the same rules and unchanged).",
            "Give the base's files first, in their order, followed by new files; or give new files only; or leave "
            "base_matrix out.",
        )
    if corpus_identity((), params) != seen["reading"]:
        raise ParameterError(
            f"The text of base_matrix={base!r} was read by another tokenizer, format, column or errors.",
            "Read the new text with the same Params, or leave base_matrix out and read all text again.",
        )
    together = [*sources, *corpus.sources]
    return 0, describe_text(corpus_identity(together, params), together, seen["tokens"] + corpus.n_tokens, params)


def match_words(old: Vocabulary, new: Vocabulary) -> Int32Array:
    """Return the new id of each old word, shape (old words,) int32.

    Raises
    ------
    VocabularyError
        If the new vocabulary lacks an old word.
    """
    ids = [new.find(word) for word in old.words]
    if None in ids:
        raise VocabularyError(
            f"{ids.count(None)} of {counted(len(ids), 'word')} of the base matrix are not in the vocabulary, such as "
            f"{old.word(ids.index(None))!r}.",
            "Give the base's files before the new ones, so that their words count, and keep as many words (min_count, "
            "max_final_vocab, vocabulary); or leave base_matrix out.",
        )
    return np.array(ids, np.int32)


@kernel
def merge_rows(contexts: Any, seen: Any, first: Any, rows: Any, old: Any, key: Any) -> None:
    """Merge rows of old text into rows of new text, both in random order.

    Parameters
    ----------
    contexts, seen
        Rows of new text, as `Reservoir.contexts` returns them, shapes (n, l) and (n,); changed in place into those of
        all text.
    first
        Number of the first row.
    rows
        Numbers of the old rows, and their numbers of pairs, shape (m, 2) int64.
    old
        Contexts of the old rows, shape (m, l).
    key
        Stream of the draws.
    """
    size = contexts.shape[1]
    for k in range(len(rows)):
        row, old_left = rows[k, 0] - first, rows[k, 1]
        new, new_left, taken = contexts[row].copy(), seen[row], 0
        seen[row] += old_left
        for column in range(min(seen[row], size)):
            left = np.uint64(old_left + new_left)  # beyond 2**32 for a frequent word
            if draw(key, rows[k, 0] * size + column) % left < np.uint64(old_left):
                contexts[row, column] = old[k, taken]
                old_left, taken = old_left - 1, taken + 1
            else:
                contexts[row, column] = new[column - taken]
                new_left -= 1
