"""Differences between two versions: Params, words, corpus."""

from typing import Any, NamedTuple

from daskw2v.models.stored.store import read_ids, read_vocabulary
from daskw2v.models.versions.finished import Version
from daskw2v.models.versions.versions import Versions
from daskw2v.vocabulary.turnover import Entry, WordRules, compare_words


class Difference(NamedTuple):
    """Differences of a later version from an earlier one.

    Parameters
    ----------
    params
        The Params that differ, with the earlier and the later value.
    entered, left
        Words that only the later and only the earlier version has, with counts, ids and reasons, most frequent first.
    kept
        Number of words that both have.
    tokens
        Tokens in the earlier and in the later corpus.
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
        """Return JSON types; reasons and ids are separate lists in the order of the words."""
        moved = {"entered": self.entered, "left": self.left}
        return {
            "params": self.params,
            **{name: [(entry.word, entry.occurrences) for entry in entries] for name, entries in moved.items()},
            "kept": self.kept,
            "tokens": self.tokens,
            "reasons": {name: [entry.reason for entry in entries] for name, entries in moved.items()},
            "ids": {name: [entry.id for entry in entries] for name, entries in moved.items()} if self.ids else None,
        }


def differences(versions: Versions, earlier: Version, later: Version) -> Difference:
    """Compare two versions. Both vocabularies are loaded into memory.

    Raises
    ------
    StoreError, VocabularyError
        If a version is damaged.
    """
    stores = [versions.models / version.name for version in (earlier, later)]
    (old, old_ids), (new, new_ids) = ((read_vocabulary(store), read_ids(store)) for store in stores)
    both = old_ids is not None and new_ids is not None
    ours, theirs = (version.manifest.get("params", {}) for version in (earlier, later))
    rules = [WordRules.from_params(params, store.url) for params, store in zip((ours, theirs), stores, strict=True)]
    moved = compare_words(old, new, *rules)
    changed = {
        name: (ours.get(name), theirs.get(name)) for name in {**ours, **theirs} if ours.get(name) != theirs.get(name)
    }
    entered, left = moved.entered.entries(new_ids if both else None), moved.left.entries(old_ids if both else None)
    before, after = (version.manifest.get("corpus", {}).get("tokens") for version in (earlier, later))
    return Difference(changed, list(entered), list(left), moved.kept, (before, after), both)
