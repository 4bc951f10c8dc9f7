"""What runs of retraining leave in a work directory, and what of it nobody needs any more.

`retraining/<run>.uses.json` names the corpora and the vocabulary of a run. What only forgotten runs used is deleted:
encoded text of files that are gone, vocabularies of other days. Text can be encoded again, so nothing is lost.
"""

from collections.abc import Collection, Iterable, Iterator

from daskw2v.shards.layout import Corpus
from daskw2v.storage import Store

_SUFFIX = ".uses.json"
_PARTS = {"shards": 3, "phrases": 2}  # of a shard's path, that one run writes or removes


def note_uses(records: Store, run_id: str, corpora: Iterable[Corpus], vocabulary: str) -> None:
    """Write down what a run uses."""
    names = list(dict.fromkeys(corpus.name for corpus in corpora))
    records.write_manifest({"corpora": names, "vocabulary": vocabulary}, f"{run_id}{_SUFFIX}")


def clear_unused(work: Store, records: Store, runs: Collection[str]) -> None:
    """Delete what was used by other runs than these, and by none of these."""
    names = [name for name in records.children() if name.endswith(_SUFFIX)]
    kept, others = (
        [name for name in names if (name.removesuffix(_SUFFIX) in runs) is wanted] for wanted in (True, False)
    )
    needed = {path for name in kept for path in _used(work, records, name)}
    for name in others:
        for path in sorted(set(_used(work, records, name)) - needed, reverse=True):  # text before the list of it
            (work / path).remove()
        (records / name).remove()


def _used(work: Store, records: Store, name: str) -> Iterator[str]:
    """Yield what a run used, below the work directory."""
    uses = records.read_manifest(name) or {"corpora": [], "vocabulary": None}
    if uses["vocabulary"] is not None:
        yield f"vocabulary/{uses['vocabulary']}"
    for corpus in uses["corpora"]:
        file = f"corpora/{corpus}.json"
        if (work / file).exists():
            yield file
            for shard in Corpus.load(work, corpus).shards:
                parts = shard.path.split("/")
                yield "/".join(parts[: _PARTS[parts[0]]])
