"""Differences between two versions: Params, words, corpus."""

from typing import Any, NamedTuple

from daskw2v.models.stored.store import read_ids, read_vocabulary
from daskw2v.models.versions.finished import Version
from daskw2v.models.versions.versions import Versions
from daskw2v.vocabulary.turnover import Entry, WordRules, compare_words


class Difference(NamedTuple):
    """The differences between an earlier and a later version.

    Parameters
    ----------
    params
        The earlier and the later value of each field of Params that differs.
    entered, left
        Words that only the later version has, and words that only the earlier version has, most frequent first.
    kept
        Number of words that both versions have.
    tokens
        Number of tokens of the earlier and of the later corpus; None if the manifest lacks it.
    ids
        Whether both versions have stable ids; if not, the ids of words are None.
    """

    params: dict[str, tuple[Any, Any]]
    entered: list[Entry]
    left: list[Entry]
    kept: int
    tokens: tuple[int | None, int | None]
    ids: bool

    def as_dict(self) -> dict[str, Any]:
        """Return the differences as JSON types; reasons and ids are separate lists in the order of the words."""
        lists = {"entered": self.entered, "left": self.left}
        return {
            "params": self.params,
            **{name: [(entry.word, entry.occurrences) for entry in entries] for name, entries in lists.items()},
            "kept": self.kept,
            "tokens": self.tokens,
            "reasons": {name: [entry.reason for entry in entries] for name, entries in lists.items()},
            "ids": {name: [entry.id for entry in entries] for name, entries in lists.items()} if self.ids else None,
        }


def differences(versions: Versions, earlier: Version, later: Version) -> Difference:
    """Return the differences between two versions. Both vocabularies are loaded into memory.

    Raises
    ------
    StoreError, VocabularyError
        If a version is damaged.
    """
    stores = [versions.models / version.name for version in (earlier, later)]
    (old, old_ids), (new, new_ids) = ((read_vocabulary(store), read_ids(store)) for store in stores)
    have_ids = old_ids is not None and new_ids is not None
    old_params, new_params = (version.manifest.get("params", {}) for version in (earlier, later))
    rules = [
        WordRules.from_params(params, store.url) for params, store in zip((old_params, new_params), stores, strict=True)
    ]
    turnover = compare_words(old, new, *rules)
    pairs = {name: (old_params.get(name), new_params.get(name)) for name in {**old_params, **new_params}}
    changed = {name: (value, new_value) for name, (value, new_value) in pairs.items() if value != new_value}
    entered = turnover.entered.entries(new_ids if have_ids else None)
    left = turnover.left.entries(old_ids if have_ids else None)
    old_tokens, new_tokens = (version.manifest.get("corpus", {}).get("tokens") for version in (earlier, later))
    return Difference(changed, list(entered), list(left), turnover.kept, (old_tokens, new_tokens), have_ids)
