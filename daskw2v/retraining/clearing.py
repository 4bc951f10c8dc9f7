"""Deletes results of earlier retraining runs that no run to keep uses.

`retraining/<run>.uses.json` names the corpora and the vocabulary of a run. Results that no run to keep uses are
deleted: encoded text of removed files, text that was in no file, sessions of events, old vocabularies. All of them can
be built again from the inputs.
"""

from collections.abc import Collection, Iterable, Iterator

from daskw2v.collections import parts
from daskw2v.errors import FormatError
from daskw2v.sequences import parts as sessions
from daskw2v.sequences import walks
from daskw2v.shards.layout import CORPORA, Corpus
from daskw2v.store.storage import Store
from daskw2v.training.preparation.repair import LAYOUTS
from daskw2v.vocabulary import count

_SUFFIX = ".uses.json"
_TEXTS = (parts.LAYOUT, sessions.LAYOUT, walks.LAYOUT)  # layouts of text that is stored in the work directory


def note_uses(records: Store, run_id: str, corpora: Iterable[Corpus], vocabulary: str) -> None:
    """Record in the folder `records` the corpora, and the key of the vocabulary, that a run uses."""
    names = list(dict.fromkeys(corpus.name for corpus in corpora))
    records.write_manifest({"corpora": names, "vocabulary": vocabulary}, f"{run_id}{_SUFFIX}")


def clear_unused(work: Store, records: Store, runs: Collection[str]) -> list[str]:
    """Delete the results of recorded runs, except results that one of `runs` uses, and the records of other runs.

    Parameters
    ----------
    work, records
        The work directory, and the folder of the records.
    runs
        Names of the runs to keep.

    Returns
    -------
    list of str
        Names of the files of records that another daskw2v wrote. If there are any, nothing is deleted, as this daskw2v
        cannot read which results their runs use.
    """
    used, foreign = dict[str, set[str]](), list[str]()
    for name in records.children():
        if name.endswith(_SUFFIX):
            try:
                used[name] = set(map(_find_unit, _list_paths(work, records, name)))
            except FormatError:
                foreign.append(name)
    if foreign:
        return foreign
    kept = {name for name in used if name.removesuffix(_SUFFIX) in runs}
    needed = {path for name in kept for path in used[name]}
    for name in used.keys() - kept:
        for path in sorted(used[name] - needed, reverse=True):  # shards before the list of them
            (work / path).remove()
        (records / name).remove()
    return []


def _find_unit(path: str) -> str:
    """Return the path of the file or folder that is deleted with a result, by the result's path."""
    return next(part for layout in LAYOUTS if (part := layout.unused_part(path)) is not None)


def _list_paths(work: Store, records: Store, name: str) -> Iterator[str]:
    """Yield the paths, below the work directory, of the results that the record in the file `name` of `records` lists.

    They are the vocabulary, and of each corpus its manifest, its shards, and its text if that was in no file.
    """
    uses = records.read_manifest(name) or {"corpora": [], "vocabulary": None}
    if uses["vocabulary"] is not None:
        yield f"{count.LAYOUT.folder}/{uses['vocabulary']}"
    for corpus in uses["corpora"]:
        file = f"{CORPORA.folder}/{corpus}.json"
        if (work / file).exists():
            yield file
            stored = Corpus.load(work, corpus)
            for source in stored.sources:
                if any(layout.unused_part(source.name) for layout in _TEXTS):
                    yield source.name
                    yield from walks.find_graph(work, source.name)
            for shard in stored.shards:
                yield shard.path
