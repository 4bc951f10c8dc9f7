"""A word-context matrix that goes on where an earlier one ended: what text is new, and how two samples become one.

A row's contexts lie in random order. So the first k of the row that all text together would give are a random merge of
two orders: next comes one of the old pairs with the chance that old pairs have among those left. That needs the number
of pairs that each row has seen, and no pair of the old text that was not kept.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from daskw2v.corpus.sources import Source
from daskw2v.errors import InputError, ParameterError, VocabularyError
from daskw2v.jit import kernel
from daskw2v.params import Params
from daskw2v.sampling.dealing import Integers
from daskw2v.sampling.rng import draw
from daskw2v.shards.layout import Corpus, corpus_identity
from daskw2v.vocabulary.vocabulary import Vocabulary
from daskw2v.wording import counted

RULES = ("context_size", "window", "shrink_windows", "sample")  # what a matrix and its base have in common


def check_rules(base: Mapping[str, Any], params: Params) -> None:
    """Refuse a base whose pairs were sampled by other rules.

    Raises
    ------
    ParameterError
        If one of the `RULES` differs.
    """
    for name in RULES:
        value = getattr(params, name)
        if value != base[name]:
            raise ParameterError(
                f"{name}={value!r}, but base_matrix={params.base_matrix!r} was made with {base[name]!r}.",
                f"Give {name}={base[name]!r}, or leave base_matrix out and read all text again.",
            )


def describe_text(identity: str, sources: Sequence[Source], tokens: int, params: Params) -> dict[str, Any]:
    """Return what a manifest says of the text that a matrix has seen, for `find_new_text`: JSON types.

    Parameters
    ----------
    identity
        `corpus_identity` of the sources.
    sources, tokens
        The files, in their order, and the words in them.
    params
        How they were read.
    """
    reading = corpus_identity((), params)  # the rules alone
    files = [asdict(source) for source in sources]
    return {"identity": identity, "reading": reading, "tokens": tokens, "sources": files}


def find_new_text(seen: Mapping[str, Any], corpus: Corpus, params: Params) -> tuple[int, dict[str, Any]]:
    """Find what a base has not seen: what follows its text in the corpus, or all of a corpus of other files.

    Parameters
    ----------
    seen
        The base's text, as of `describe_text`.
    corpus, params
        Text, and how it was read.

    Returns
    -------
    start, text
        The first new position; and what base and corpus have seen together, as of `describe_text`.

    Raises
    ------
    InputError
        If base and corpus have files in common, but the corpus does not begin with the base's text.
    ParameterError
        If new files are read by other rules.
    """
    sources, n = [Source(**source) for source in seen["sources"]], len(seen["sources"])
    if corpus_identity(corpus.sources[:n], params) == seen["identity"]:
        return seen["tokens"], describe_text(corpus.identity, corpus.sources, corpus.n_tokens, params)
    urls = {source.url for source in sources}
    shared = [source.url for source in corpus.sources if source.url in urls]
    if shared:
        raise InputError(
            f"{shared[0]} is in the text of base_matrix={params.base_matrix!r}, but the corpus does not begin with all "
            f"of that text ({counted(n, 'file')}, read by the same rules and unchanged).",
            "Name the base's files first and in their order, with new text in files of its own; or name new files "
            "only; or leave base_matrix out.",
        )
    if corpus_identity((), params) != seen["reading"]:
        raise ParameterError(
            f"base_matrix={params.base_matrix!r} was made of text that was read by another tokenizer, format, column "
            "or errors.",
            "Read new text as the base's was, or leave base_matrix out and read all text again.",
        )
    together = [*sources, *corpus.sources]
    return 0, describe_text(corpus_identity(together, params), together, seen["tokens"] + corpus.n_tokens, params)


def match_words(old: Vocabulary, new: Vocabulary) -> Integers:
    """Return the new id of each old word, shape (old words,) int32.

    Raises
    ------
    VocabularyError
        If a word is missing among the new ones.
    """
    ids = [new.find(word) for word in old.words]
    if None in ids:
        raise VocabularyError(
            f"{ids.count(None)} of {counted(len(ids), 'word')} of the base matrix are not in the vocabulary, such as "
            f"{old.word(ids.index(None))!r}.",
            "Name the base's files in front of new ones, so that their words count, and keep as many words (min_count, "
            "max_final_vocab, vocabulary); or leave base_matrix out.",
        )
    return np.array(ids, np.int32)


@kernel
def merge_rows(contexts: Any, seen: Any, first: Any, rows: Any, old: Any, key: Any) -> None:
    """Merge what old text gave into what new text gives, both in random order.

    Parameters
    ----------
    contexts, seen
        Of new text, as of `Reservoir.contexts`, shapes (n, l) and (n,); changed into those of all text.
    first
        Number of the first row.
    rows
        Rows that old text gave, and the pairs they had seen, shape (m, 2) int64.
    old
        Their contexts, shape (m, l).
    key
        Stream of the choices.
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
