"""A disk that loses power: records what this process writes and syncs, and builds what may be on the disk afterwards.

The disk keeps what was synced. Everything else is drawn at random: each name of a folder, and the content of each file,
is what it was at any moment since it was synced last, independently of all others. So writes are lost, cut short and
reordered, and a renamed file may have both names or none. Real filesystems lose less.
"""

import builtins
import io
import os
import random
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal
from unittest import mock

from daskw2v.store import durability

ROOT = 0
Tree = dict[str, bytes | None]  # paths below the root, and contents; None is a folder
Loss = Literal["all kept", "all lost", "contents lost", "random"]
LOSSES: tuple[Loss, ...] = ("all lost", "contents lost", "all kept", "random")
_OPEN, _OS_OPEN = builtins.open, os.open


@dataclass(frozen=True)
class Names:
    """Entries of folders that change at once: (folder, name, file or folder, or None)."""

    entries: tuple[tuple[int, str, int | None], ...]


@dataclass(frozen=True)
class Content:
    """A file's new content."""

    file: int
    content: bytes


@dataclass(frozen=True)
class Sync:
    """A file or folder is forced to the disk, or everything."""

    what: int | None


Event = Names | Content | Sync


class Disk:
    """What a disk may hold: of each name and each file all that it was since it was synced last, oldest first."""

    def __init__(self) -> None:
        self.folders: dict[int, dict[str, list[int | None]]] = {ROOT: {}}
        self.files: dict[int, list[bytes]] = {}

    def apply(self, event: Event) -> None:
        """Do what was recorded."""
        match event:
            case Names(entries):
                for folder, name, node in entries:
                    self.folders.setdefault(folder, {}).setdefault(name, [None]).append(node)
            case Content(file, content):
                self.files.setdefault(file, [b""]).append(content)
            case Sync(None):
                for node in (*self.folders, *self.files):
                    self._sync(node)
            case Sync(int(node)):
                self._sync(node)

    def _sync(self, node: int) -> None:
        if node in self.files:
            del self.files[node][:-1]
        for versions in self.folders.get(node, {}).values():
            del versions[:-1]

    def after(self, loss: Loss, draws: random.Random) -> Tree:
        """Return what the disk holds after a loss of power."""

        def node_of(versions: list[int | None]) -> int | None:
            if loss == "random":
                return draws.choice(versions)
            return versions[0 if loss == "all lost" else -1]

        def content_of(versions: list[bytes]) -> bytes:
            if loss == "random" and len(versions) > 1:
                last = versions[-1]
                return draws.choice([*versions, bytes(len(last)), last[: draws.randint(0, len(last))]])
            return versions[-1 if loss == "all kept" else 0]

        tree: Tree = {}

        def walk(folder: int, path: str) -> None:
            for name, versions in self.folders.get(folder, {}).items():
                node = node_of(versions)
                if node is None:
                    continue
                place = f"{path}{name}"
                if node in self.files:
                    tree[place] = content_of(self.files[node])
                else:
                    tree[place] = None
                    walk(node, f"{place}/")

        walk(ROOT, "")
        return tree


def write_tree(folder: Path, tree: Tree) -> None:
    """Make a folder with that content."""
    folder.mkdir(parents=True)
    for path, content in tree.items():  # folders come before what is in them
        if content is None:
            (folder / path).mkdir()
        else:
            (folder / path).write_bytes(content)


def read_tree(folder: Path) -> Tree:
    """Return the content of a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


@dataclass
class Recorder:
    """Records what this process does in a folder, which exists already, and whose content is on the disk.

    Parameters
    ----------
    root
        The folder.
    bulk
        Whether whole filesystems can be forced; otherwise each file is.
    """

    root: Path
    bulk: bool = True
    events: list[Event] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._lock = threading.RLock()
        self._live: dict[int, dict[str, int]] = {ROOT: {}}
        self._contents: dict[int, bytes] = {}
        self._place: dict[int, tuple[int, str]] = {}
        self._open: dict[int, Callable[[], bool]] = {}
        self._numbers = iter(range(1, 1 << 40))
        for path, content in sorted(read_tree(self.root).items()):
            folder, name = self._parent(tuple(path.split("/")))
            node = self._new(folder, name, is_folder=content is None)
            if content is not None:
                self._put(node, content)
        self.events.append(Sync(None))
        self.base = len(self.events)

    def disk(self, events: int) -> Disk:
        """Return the disk after so many events."""
        disk = Disk()
        for event in self.events[:events]:
            disk.apply(event)
        return disk

    def check(self) -> None:
        """Check that nothing was missed: what was recorded is what lies in the folder."""
        self._catch_up()
        recorded = self.disk(len(self.events)).after("all kept", random.Random(0))
        found = read_tree(self.root)
        differing = sorted(
            path
            for path in recorded.keys() | found.keys()
            if path not in recorded or path not in found or recorded[path] != found[path]
        )
        if differing:
            raise AssertionError(f"Writes were missed: {', '.join(differing[:5])}")

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Record what is done in a block. Syncs are recorded, and not done."""
        wrapped: dict[str, Callable[..., Any]] = {
            "open": self._os_open,
            "mkdir": self._mkdir,
            "rmdir": self._remove,
            "unlink": self._remove,
            "remove": self._remove,
            "rename": self._rename,
            "replace": self._rename,
            "link": self._link,
            "fsync": self._fsync,
            "fdatasync": self._fsync,
        }
        with ExitStack() as patched:
            for name, wrap in wrapped.items():
                patched.enter_context(mock.patch.object(os, name, partial(wrap, getattr(os, name))))
            for module in (builtins, io):
                patched.enter_context(mock.patch.object(module, "open", self._opened))
            # An argument's default is bound when the function is defined
            patched.enter_context(mock.patch.object(durability.replace_file, "__defaults__", (os.replace,)))
            patched.enter_context(mock.patch.object(durability, "syncfs", self._syncfs if self.bulk else None))
            yield
        self._catch_up()

    # What wraps the system's functions. The lock makes the order that is recorded the order in which things happen.

    def _opened(self, file: Any, mode: str = "r", *args: Any, **options: Any) -> Any:
        where = self._inside(file) if set(mode) & set("wax+") and not isinstance(file, int) else None
        if where is None:
            return _OPEN(file, mode, *args, **options)
        with self._lock:
            self._catch_up()
            opened = _OPEN(file, mode, *args, **options)
            alive = weakref.ref(opened)
            self._written(where, lambda: (f := alive()) is not None and not f.closed)
            return opened

    def _os_open(self, real: Callable[..., int], path: Any, flags: int, *args: Any, **options: Any) -> int:
        where = self._inside(path, options.get("dir_fd")) if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) else None
        if where is None:
            return real(path, flags, *args, **options)
        with self._lock:
            self._catch_up()
            number = real(path, flags, *args, **options)
            target = os.path.realpath(f"/proc/self/fd/{number}")
            self._written(where, lambda: os.path.realpath(f"/proc/self/fd/{number}") == target)
            return number

    def _written(self, where: tuple[str, ...], is_open: Callable[[], bool]) -> None:
        """Note that a file is open to be written."""
        folder, name = self._parent(where)
        node = self._live[folder].get(name)
        if node is None:
            node = self._new(folder, name, is_folder=False)
        self._open[node] = is_open
        self._catch_up()

    def _catch_up(self) -> None:
        """Record what was written to open files, and to those closed since the last call."""
        with self._lock:
            for node, is_open in list(self._open.items()):
                still = is_open()
                path = self._path(node)
                if path is not None:
                    with _OPEN(path, "rb") as file:
                        self._put(node, file.read())
                if not still:
                    del self._open[node]

    def _mkdir(self, real: Callable[..., None], path: Any, *args: Any, **options: Any) -> None:
        where = self._inside(path, options.get("dir_fd"))
        with self._lock:
            real(path, *args, **options)
            if where:
                self._catch_up()
                self._new(*self._parent(where), is_folder=True)

    def _remove(self, real: Callable[..., None], path: Any, *, dir_fd: int | None = None) -> None:
        where = self._inside(path, dir_fd)
        with self._lock:
            if where:
                self._catch_up()
            real(path, dir_fd=dir_fd)
            if where:
                folder, name = self._parent(where)
                self._change((folder, name, None))

    def _rename(self, real: Callable[..., None], source: Any, target: Any, **options: Any) -> None:
        self._name(real, source, target, options, keep=False)

    def _link(self, real: Callable[..., None], source: Any, target: Any, **options: Any) -> None:
        self._name(real, source, target, options, keep=True)

    def _name(
        self, real: Callable[..., None], source: Any, target: Any, options: Mapping[str, Any], *, keep: bool
    ) -> None:
        """Give a file or folder another name; keep the one that it has, or do not."""
        old, new = self._inside(source), self._inside(target)
        with self._lock:
            if old:
                self._catch_up()
            real(source, target, **options)
            if old and new:
                (folder, name), (to, other) = self._parent(old), self._parent(new)
                lost = () if keep else ((folder, name, None),)
                self._change(*lost, (to, other, self._live[folder][name]))

    def _fsync(self, real: Callable[[int], None], number: int) -> None:
        where = self._inside(os.path.realpath(f"/proc/self/fd/{number}"))
        with self._lock:
            if where is None:
                return
            self._catch_up()
            node = self._node(where)
            if node is not None:
                self.events.append(Sync(node))

    def _syncfs(self, number: int) -> int:
        with self._lock:
            if self._inside(os.path.realpath(f"/proc/self/fd/{number}")) is not None:
                self._catch_up()
                self.events.append(Sync(None))
        return 0

    # The tree as it is now

    def _inside(self, path: Any, folder: int | None = None) -> tuple[str, ...] | None:
        """Return the parts of a path below the root, or None if it is elsewhere."""
        text = os.fsdecode(path)
        if folder is not None:
            text = os.path.join(os.path.realpath(f"/proc/self/fd/{folder}"), text)
        root, text = f"{self.root}/", f"{os.path.abspath(text)}/"
        return tuple(text[len(root) :].split("/")[:-1]) if text.startswith(root) else None

    def _node(self, where: tuple[str, ...]) -> int | None:
        node: int | None = ROOT
        for name in where:
            node = self._live.get(node, {}).get(name) if node is not None else None
        return node

    def _parent(self, where: tuple[str, ...]) -> tuple[int, str]:
        node = self._node(where[:-1])
        assert node is not None, f"{'/'.join(where)} lies in a folder that was made unseen"
        return node, where[-1]

    def _path(self, node: int) -> str | None:
        """Return the path of a file, or None if it has none any more."""
        parts: list[str] = []
        while node != ROOT:
            folder, name = self._place[node]
            if self._live.get(folder, {}).get(name) != node:
                return None
            parts.insert(0, name)
            node = folder
        return "/".join([str(self.root), *parts])

    def _new(self, folder: int, name: str, *, is_folder: bool) -> int:
        node = next(self._numbers)
        if is_folder:
            self._live[node] = {}
        else:
            self._contents[node] = b""
            self.events.append(Content(node, b""))
        self._change((folder, name, node))
        return node

    def _change(self, *entries: tuple[int, str, int | None]) -> None:
        for folder, name, node in entries:
            if node is None:
                self._live[folder].pop(name, None)
            else:
                self._live[folder][name] = node
                self._place[node] = folder, name
        self.events.append(Names(entries))

    def _put(self, node: int, content: bytes) -> None:
        if self._contents[node] != content:
            self._contents[node] = content
            self.events.append(Content(node, content))
