"""Commands whose power fails: what each does, what readers may see after that, and how it ends when given again."""

import hashlib
import itertools
import json
import random
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from distributed import Client

from daskw2v import Gates, Params, Policy, Resources, Vectors, Versions, export, retrain, train
from daskw2v.errors import Daskw2vError
from daskw2v.models.index.vectors import build_index
from daskw2v.store import durability, lease
from daskw2v.store.arrays import read_array
from daskw2v.store.storage import Store
from tests.support.power import LOSSES, Loss, Recorder, Tree, read_tree, write_tree

SMALL = Params(vector_size=4, min_count=1, epochs=1, window=2, alpha=0.05)
ONE = Resources(threads=1, block_size="2 KiB", checkpoint_seconds=0)
LOOSE = Gates(min_stability=None, min_kept=None)
_boots = itertools.count()


@dataclass(frozen=True)
class Place:
    """Where a command is given: a folder of text, which nobody writes to; one in which it writes; and a cluster."""

    text: Path
    root: Path
    client: Client

    @property
    def work(self) -> Path:
        return self.root / "work"


Act = Callable[[Place], Any]


@dataclass(frozen=True)
class Command:
    """A command, and what was done before: then all of that is on the disk."""

    before: Sequence[Act]
    act: Act


def training(**changes: Any) -> Act:
    """Return a training on the first day."""

    def act(place: Place) -> None:
        params = SMALL.replace(**changes)
        train(
            str(place.text / "0.txt"), work=place.work, params=params, resources=ONE, client=place.client, listener=None
        )

    return act


def night(days: int, *, index: bool = False) -> Act:
    """Return a retraining on all text of the first days."""

    def act(place: Place) -> None:
        files = [str(place.text / f"{day}.txt") for day in range(days)]
        retrain(
            files,
            work=place.work,
            params=SMALL,
            resources=ONE,
            policy=Policy(keep=2, index=index),
            gates=LOOSE,
            client=place.client,
            listener=None,
        )

    return act


def publish(place: Place) -> None:
    versions = Versions.open(place.work)
    versions.publish(versions.all()[0].name)


def roll_back(place: Place) -> None:
    """Serve the second version again. Once that is done, nobody gives the command again: it would go back further."""
    versions = Versions.open(place.work)
    if versions.name_of() != versions.all()[1].name:
        versions.rollback()


def tag(place: Place) -> None:
    versions = Versions.open(place.work)
    versions.tag(versions.all()[1].name, "good")


def retag(place: Place) -> None:
    versions = Versions.open(place.work)
    versions.tag(versions.all()[2].name, "good")


def gc(place: Place) -> None:
    Versions.open(place.work).gc(1, 0)


def index(connectivity: int) -> Act:
    def act(place: Place) -> None:
        build_index(str(place.work), connectivity=connectivity, threads=1)

    return act


def exporting(version: int) -> Act:
    """Return an export in three formats; files of an earlier version may be there."""

    def act(place: Place) -> None:
        vectors = Vectors.open(place.work / "models" / Versions.open(place.work).all()[version].name)
        for suffix in ("vec", "bin", "parquet"):
            export(vectors, place.root / "out" / f"vectors.{suffix}")

    return act


_THREE = [training(seed=seed) for seed in (1, 2, 3)]
COMMANDS = {
    "train, averaging": Command([], training(rounds_per_epoch=3)),
    "train, rotation": Command([], training(strategy="rotation", n_partitions=2, passes_per_epoch=2)),
    "train, hierarchical softmax": Command([], training(objective="sg_hs")),
    "train, columns": Command([], training(objective="context_matrix", strategy="columns", context_size=8)),
    "train, phrases": Command([], training(phrases=1, phrase_min_count=1, phrase_threshold=0.1)),
    "retrain": Command([night(1), night(2)], night(3)),
    "retrain with an index": Command([night(1, index=True)], night(2, index=True)),
    "versions publish": Command(_THREE, publish),
    "versions rollback": Command(_THREE, roll_back),
    "versions tag": Command([*_THREE, tag], retag),
    "versions gc": Command([*_THREE, training(seed=4)], gc),
    "index": Command([training()], index(4)),
    "index, again": Command([training(), index(4)], index(8)),
    "export": Command([*_THREE[:2], exporting(0)], exporting(1)),
}


def write_text(folder: Path, days: int = 3) -> None:
    """Write a small file for each day, with a word of its own."""
    folder.mkdir(parents=True)
    for day in range(days):
        words = np.random.default_rng(day).zipf(1.3, (60, 10)) % 40
        lines = (" ".join(f"w{n}" for n in line) + f" day{day}" for line in words.tolist())
        (folder / f"{day}.txt").write_text("\n".join(lines) + "\n")


@contextmanager
def booted() -> Iterator[None]:
    """Look like a machine that has just begun, to leases; holders from before are not waited for."""
    name = f"boot {next(_boots)}"
    with mock.patch.multiple(lease, _get_machine=lambda: name, EXPIRY=0.0, POLL=0.0):
        yield


@dataclass(frozen=True)
class State:
    """What readers see: each version's content, and its index; what is served, and tags; exported files."""

    versions: dict[str, str]
    indexes: dict[str, str]
    served: str | None
    tags: dict[str, str]
    files: dict[str, str]


def state_of(root: Path) -> State:
    """Read all that is there; raises errors of ours where something is damaged."""
    versions = Versions(Store(str(root / "work")))
    names = [version.name for version in versions.all()]
    if served := versions.name_of():
        vectors = Vectors.open(versions.models.url)
        vectors.most_similar(vectors.vocabulary.words[0])
    out = root / "out"
    files = {path.name: _digest(path.read_bytes()) for path in out.glob("vectors.*")} if out.exists() else {}
    contents = {name: content_of(versions.models / name) for name in names}
    indexes = {name: found for name in names if (found := index_of(versions.models / name)) is not None}
    return State(contents, indexes, served, versions.tags(), files)


def content_of(version: Store) -> str:
    """Return a digest of all arrays of a version."""
    found = []
    for path in sorted(version.sizes()):
        folder, _, name = path.rpartition("/")
        if name == "zarr.json" and folder and json.loads(version.read_bytes(path) or b"")["node_type"] == "array":
            home, _, array = folder.rpartition("/")
            values = read_array((version / home if home else version).open_group(), array)
            found.append(f"{folder} {values.shape} {_digest(values.tobytes())}")
    return _digest("\n".join(found).encode())


def index_of(version: Store) -> str | None:
    """Return a digest of a version's index, if it has one."""
    if (summary := (version / "index").read_manifest()) is None:
        return None
    return f"{summary['connectivity']} {_digest((version / 'index').read_range(summary['file'], 0, summary['size']))}"


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=8).hexdigest()


@dataclass(frozen=True)
class Outage:
    """A loss of power: after how many events, what is lost, and a number that random losses depend on."""

    events: int
    loss: Loss
    seed: int = 0


class Played:
    """A command as it was recorded where nothing disturbed it.

    Parameters
    ----------
    name
        Of the command.
    folder
        Where it may write.
    client
        A cluster inside this process.
    bulk
        As of `Recorder`.
    """

    def __init__(self, name: str, folder: Path, client: Client, *, bulk: bool = True) -> None:
        self.name, self._folder, self._client, self._numbers = name, folder, client, itertools.count()
        self._command, self._text = COMMANDS[name], folder / "text"
        write_text(self._text)
        begun = self._next()
        begun.work.mkdir(parents=True)
        with booted():
            for act in self._command.before:
                act(begun)
        place = self._next()
        write_tree(place.root, read_tree(begun.root))
        self.recorder, self.before = Recorder(place.root, bulk), state_of(place.root)
        with booted(), self.recorder.recording():
            self._command.act(place)
        self.recorder.check()
        self.after = state_of(place.root)
        self._seen = set[str]()

    @property
    def prefixes(self) -> range:
        """The numbers of events after which the power may fail."""
        return range(self.recorder.base, len(self.recorder.events) + 1)

    def outages(self, seed: int = 0) -> Iterator[Outage]:
        """Yield each prefix with each kind of loss, in random order; then again, with other random losses."""
        for number in itertools.count():
            losses = LOSSES if number == 0 else ("random",)
            outages = [Outage(events, loss, number) for events in self.prefixes for loss in losses]
            random.Random(f"{seed} {number}").shuffle(outages)
            yield from outages

    def disk(self, outage: Outage) -> Tree:
        """Return what the disk holds after the power failed."""
        draws = random.Random(f"{self.name} {outage}")
        return self.recorder.disk(outage.events).after(outage.loss, draws)

    def is_new(self, tree: Tree) -> bool:
        """Tell whether this is the first disk of that content."""
        content = hashlib.blake2b()
        for path, found in sorted(tree.items()):
            content.update(f"{path!r} {None if found is None else len(found)} ".encode() + (found or b""))
        seen = content.hexdigest() in self._seen
        self._seen.add(content.hexdigest())
        return not seen

    def go_on(self, tree: Tree) -> str | None:
        """Read what the disk holds, give the command again, and read its results; return what is wrong."""
        place = self._next()
        write_tree(place.root, tree)
        place.work.mkdir(exist_ok=True)
        try:
            with booted():
                return self._look(place) or self._again(place)
        finally:
            shutil.rmtree(place.root)

    def _look(self, place: Place) -> str | None:
        """What was served is served still, or what the command serves. Readers see its bits, or an error of ours."""
        try:
            found = state_of(place.root)
        except Daskw2vError as error:
            return f"A reader is refused: {error}"
        for part in ("versions", "indexes", "tags", "files"):
            old, new, now = (getattr(state, part) for state in (self.before, self.after, found))
            for key in old.keys() | new.keys() | now.keys():
                if now.get(key) not in (old.get(key), new.get(key)):
                    return f"A reader sees other {part}: {key}"
        if found.served not in (self.before.served, self.after.served):
            return f"{found.served} is served"
        return None

    def _again(self, place: Place) -> str | None:
        try:
            with _unsynced():
                self._command.act(place)
            found = state_of(place.root)
        except Exception as error:
            return f"The command fails: {type(error).__name__}: {error}"
        return None if found == self.after else f"The command ends otherwise: {found} instead of {self.after}"

    def _next(self) -> Place:
        return Place(self._text, self._folder / f"disk{next(self._numbers)}", self._client)


@contextmanager
def _unsynced() -> Iterator[None]:
    """Spare the real disk."""
    with mock.patch.object(durability, "syncfs", return_value=0), mock.patch("os.fsync"):
        yield
