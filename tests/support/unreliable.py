"""A filesystem in memory that is as unreliable as object stores and networks are: `unreliable://path`.

Processes do not share it; a cluster inside this process does. A fault decides call by call, without clocks, so a test
that fails does so again.
"""

import errno
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import RLock
from typing import Any, ClassVar

import fsspec
from fsspec.implementations.memory import MemoryFileSystem


class Fault:
    """What goes wrong; this one lets everything pass. `struck` counts how often it did."""

    def __init__(self) -> None:
        self.struck = 0
        self._calls: Counter[tuple[str, str]] = Counter()

    def strikes(self, call: str, path: str) -> bool:
        """Tell whether a call is struck: every third of its kind about a path is, so five tries are enough."""
        self._calls[call, path] += 1
        hit = self._calls[call, path] % 3 == 1
        self.struck += hit
        return hit

    def ask(self, call: str, path: str) -> None:
        """Be asked for something."""

    def content(self, path: str, content: bytes | None) -> bytes | None:
        """Return what a reader gets; None where there is no file."""
        return content

    def names(self, path: str, names: list[Any]) -> list[Any]:
        """Return what a listing tells."""
        return names

    def put(self, put: Callable[[], None], path: str) -> None:
        """Write."""
        put()


class Error(Fault):
    """Calls fail: an internal error, a request to slow down, a bad sector, a lost connection."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self._error = error

    def ask(self, call: str, path: str) -> None:
        if self.strikes(call, path):
            raise self._error


class Short(Fault):
    """Answers are cut."""

    def content(self, path: str, content: bytes | None) -> bytes | None:
        return content[: len(content) // 2] if content and self.strikes("get", path) else content


class Stale(Fault):
    """After a change the first reader still gets what was there before: older content, or no file."""

    def __init__(self) -> None:
        super().__init__()
        self._last: dict[str, bytes | None] = {}

    def content(self, path: str, content: bytes | None) -> bytes | None:
        last, self._last[path] = self._last.get(path, content), content
        self.struck += last != content
        return last


class Lagging(Fault):
    """After a change the first two listings are those of before."""

    def __init__(self) -> None:
        super().__init__()
        self._told: dict[str, tuple[list[Any], int]] = {}

    def names(self, path: str, names: list[Any]) -> list[Any]:
        told, times = self._told.get(path, ([], 0))
        if told == names or times == 2:
            self._told[path] = names, 0
            return names
        self._told[path] = told, times + 1
        self.struck += 1
        return told


class Twice(Fault):
    """Each write is done again when the next one is: a client that got no answer sent it a second time."""

    def __init__(self) -> None:
        super().__init__()
        self._late: Callable[[], None] | None = None

    def put(self, put: Callable[[], None], path: str) -> None:
        late, self._late = self._late, put
        put()
        if late is not None and late is not put:
            self.struck += 1
            with suppress(Exception):  # nobody hears of it
                late()


FAULTS: dict[str, Callable[[], Fault]] = {
    "500": lambda: Error(OSError(errno.EIO, "Internal Server Error")),
    "503": lambda: Error(OSError(errno.EBUSY, "Slow Down")),
    "connection lost": lambda: Error(ConnectionResetError("lost")),
    "cut short": Short,
    "stale": Stale,
    "listings lag": Lagging,
    "put twice": Twice,
}


class UnreliableFileSystem(MemoryFileSystem):
    """The memory filesystem with a `fault`."""

    protocol = "unreliable"
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]
    fault: ClassVar[Fault] = Fault()
    fold_case: ClassVar[bool] = False
    lock: ClassVar[RLock] = RLock()
    asked: ClassVar[bool] = False

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        if isinstance(path, list):
            return [cls._strip_protocol(one) for one in path]
        path = super()._strip_protocol(str(path).replace("unreliable://", "memory://"))
        return path.lower() if cls.fold_case else path

    def unstrip_protocol(self, name: str) -> str:
        return f"unreliable://{self._strip_protocol(name).lstrip('/')}"

    @contextmanager
    def _asked(self, call: str, path: Any) -> Iterator[None]:
        """Fail as told; what a call asks for itself does not fail."""
        with self.lock:
            if not self.asked:
                self.fault.ask(call, str(path))
            before, UnreliableFileSystem.asked = self.asked, True
            try:
                yield
            finally:
                UnreliableFileSystem.asked = before

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **options: Any) -> bytes:
        with self._asked("get", path):
            path = self._strip_protocol(path)
            content = self.fault.content(path, super().cat_file(path) if path in self.store else None)
        if content is None:
            raise FileNotFoundError(path)
        return content[slice(start, end)]

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **options: Any) -> None:
        with self._asked("put", path):
            self.fault.put(lambda: MemoryFileSystem.pipe_file(self, path, value, mode=mode, **options), path)

    def ls(self, path: str, detail: bool = True, **options: Any) -> Any:
        with self._asked("list", path):
            names = super().ls(path, detail=detail, **options)
            return names if detail else self.fault.names(self._strip_protocol(path), names)

    def exists(self, path: str, **options: Any) -> bool:
        with self._asked("head", path):
            return bool(super().exists(path, **options))

    def rm(self, path: Any, recursive: bool = False, maxdepth: int | None = None) -> None:
        with self._asked("delete", path):
            super().rm(path, recursive, maxdepth)


@contextmanager
def unreliable(fault: Fault, *, fold_case: bool = False) -> Iterator[type[UnreliableFileSystem]]:
    """Have an empty filesystem with a fault; `fold_case` for one to which A and a are one name."""
    fsspec.register_implementation("unreliable", UnreliableFileSystem, clobber=True)
    UnreliableFileSystem.fault, UnreliableFileSystem.fold_case = fault, fold_case
    try:
        yield UnreliableFileSystem
    finally:
        UnreliableFileSystem.fault, UnreliableFileSystem.fold_case = Fault(), False
        UnreliableFileSystem.store.clear()
        UnreliableFileSystem.pseudo_dirs[:] = [""]
