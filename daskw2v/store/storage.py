"""A store: JSON manifests and Zarr groups below one fsspec URL, which hold everything that is written.

This module has the rules that keep data whole: a manifest is written last and atomically, an array is written whole
by one task, or by several along chunk bounds only, and nothing is ever pickled.
"""

import json
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol, TypeVar

import numpy.typing as npt
import zarr
from zarr.abc.store import Store as ZarrStore
from zarr.errors import ContainsGroupError

from daskw2v.errors import DamageError, FormatError, StoreError
from daskw2v.store import durability, literal
from daskw2v.store.checksums import CHECKSUM, FOREIGN, PLACE, checksum_of, twice
from daskw2v.store.folder import Folder
from daskw2v.store.limits import MOST_MANIFEST, check_file, check_name, check_way, parsed, refused
from daskw2v.store.retries import TIMEOUT, RetryingStore, with_retries
from daskw2v.store.urls import absolute, as_url, filesystem

T = TypeVar("T")
FORMAT_VERSION = 1
MANIFEST = "manifest.json"
_TRIES = 3  # to create a file that others write, too


class Guard(Protocol):
    """A condition that has to hold before something is written or deleted, such as `lease.Token`."""

    def check(self) -> None:
        """Raise a StoreError if it does not hold."""


@dataclass(frozen=True)
class Store:
    """A folder at an fsspec URL; cheap to make, safe to send to a worker.

    Parameters
    ----------
    url
        Any fsspec URL or local path; a relative path, or one below ~, is made absolute.
    options
        Options for fsspec. They may hold secrets, so they are never written and never shown.
    timeout
        Seconds that each call may take; a call that fails or takes longer is repeated several times.
    guards
        Are checked before each write and deletion, but not before each chunk of an array; see `guarded`.
    depth
        Number of names from the folder that the user named to this one: nothing is changed through links among them.

    Examples
    --------
    >>> from daskw2v.stages import Store
    >>> store = Store("memory://bucket") / "words"
    >>> store.url, store.exists()
    ('memory://bucket/words', False)
    """

    url: str
    options: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)
    timeout: float = field(default=TIMEOUT, repr=False, compare=False)
    guards: tuple[Guard, ...] = field(default=(), repr=False, compare=False)
    depth: int = field(default=0, repr=False, compare=False)

    def __post_init__(self) -> None:
        # A worker may stand in another directory
        url = absolute(as_url(self.url, "url"))
        object.__setattr__(self, "url", url if url.endswith("://") else url.rstrip("/") or "/")

    def __truediv__(self, name: str) -> "Store":
        check_name(name)
        return replace(self, url=f"{self.url.rstrip('/')}/{name}", depth=self.depth + name.count("/") + 1)

    def guarded(self, *guards: Guard) -> "Store":
        """Return this store with more guards."""
        return replace(self, guards=(*self.guards, *guards))

    def check(self) -> None:
        """Check all guards; raises as they do."""
        for guard in self.guards:
            guard.check()

    @property
    def name(self) -> str:
        """The last name of the URL."""
        return self.url.rstrip("/").rsplit("/", 1)[-1]

    def _filesystem(self) -> tuple[Any, str]:
        fs, path = filesystem(self.url, self._fresh())
        literal.check_literal(fs, path)
        return fs, path

    def _fresh(self) -> dict[str, Any]:
        """Return the options for a filesystem that remembers no listing: other machines write here too."""
        return {"use_listings_cache": False, **self.options}

    @property
    def local_path(self) -> str | None:
        """The path on this machine, or None where the store is elsewhere."""
        fs, path = self._filesystem()
        return path if "file" in fs.protocol else None

    def check_way(self, *names: str) -> None:
        """Check the way to this folder, or to what is named in it; raises as `limits.check_way` does."""
        if (local := self.local_path) is not None:
            check_way("/".join((local, *names)), self.depth + sum(name.count("/") + 1 for name in names))

    def _with_retries(self, function: Callable[..., T], *args: Any, name: str = "", **options: Any) -> T:
        place = f"{self.url}/{name}" if name else self.url
        return with_retries(function, *args, place=place, timeout=self.timeout, **options)

    def _change(self, function: Callable[..., T], *args: Any, name: str = "") -> T:
        """Write or delete a file, or this folder, with retries; check guards and the way to it before each try."""

        def change() -> T:
            self.check_way(*filter(None, (name,)))
            return function(*args)

        return self._with_retries(change, name=name, before=self.check)

    def exists(self) -> bool:
        """Return whether anything lies at the URL."""
        fs, path = self._filesystem()
        return bool(self._with_retries(fs.exists, path))

    def children(self) -> list[str]:
        """Return the names directly below, sorted; none where nothing lies at the URL."""
        fs, path = self._filesystem()
        try:
            paths = self._with_retries(partial(fs.ls, path, detail=False))
            return sorted(p.rstrip("/").rsplit("/", 1)[-1] for p in paths)
        except (FileNotFoundError, NotADirectoryError):
            return []

    def size(self, name: str) -> int | None:
        """Return the bytes of a file, or None where there is none."""
        fs, path = self._filesystem()
        try:
            return int(self._with_retries(fs.info, f"{path}/{name}", name=name)["size"])
        except FileNotFoundError:
            return None

    def sizes(self) -> dict[str, int]:
        """Return the paths of all files below the URL, and their sizes in bytes."""
        fs, path = self._filesystem()
        entries = self._with_retries(partial(fs.find, path, detail=True))
        start = len(path.rstrip("/")) + 1
        return {name[start:]: int(entry["size"]) for name, entry in entries.items()}

    def remove(self) -> None:
        """Delete everything at the URL, if anything is there.

        On this machine it is renamed first, so that it exists as a whole or not at all, and a file or folder that
        another process creates at the URL meanwhile stays. Guards are checked once more after that: if one does not
        hold, it is renamed back. If the deletion is interrupted, the next one of the same URL ends it.
        """
        fs, path = self._filesystem()
        is_local = "file" in fs.protocol
        self._change(partial(literal.remove_local, path, self.check) if is_local else partial(literal.remove, fs, path))

    def force_names(self) -> None:
        """Force what is named here, and what is no longer, to a local disk; raises as `durability.force`."""
        if (local := self.local_path) is not None:
            durability.force_names(local)

    def read_bytes(self, name: str, most: int = MOST_MANIFEST) -> bytes | None:
        """Return a small file's content, or None where it does not exist.

        Raises
        ------
        StoreError
            If it has more than `most` bytes, of which no more are read.
        """
        fs, path = self._filesystem()

        def read() -> bytes:
            if "file" in fs.protocol:
                check_file(path, name, most)
            return literal.read_range(fs, f"{path}/{name}", 0, most + 1)

        try:
            content = self._with_retries(read, name=name)
        except (FileNotFoundError, NotADirectoryError):
            return None
        if len(content) > most:
            raise refused(f"{self.url}/{name}", f"has more than {most:,} bytes")
        return content

    def write_bytes(self, name: str, content: bytes, *, alone: bool = False) -> None:
        """Write a small file atomically: whoever reads sees the old content or the new, never a part.

        On a local disk, all that this process wrote before is on disk before the file is, unless it is `alone`.

        Raises
        ------
        StoreError
            If the store refuses the write (no space, no permission), or does not answer; or as `durability.force`.
        """
        self._write(name, content, alone, new=False)

    def _write(self, name: str, content: bytes, alone: bool, *, new: bool) -> None:
        """Write a small file; with `new` raise a FileExistsError where there is one."""
        fs, path = self._filesystem()
        if "file" not in fs.protocol:  # object stores put whole objects
            write = partial(fs.pipe_file, f"{path}/{name}", content, **({"mode": "create"} if new else {}))
        else:
            move = os.link if new else os.replace
            write = partial(durability.replace, f"{path}/{name}", content, move, alone=alone)
        self._change(write, name=name)

    def create_bytes(self, name: str, content: bytes, *, alone: bool = False) -> None:
        """Write a small file that replaces none, as `write_bytes` does.

        A file of that name is deleted first, while the guards hold. So a process that lost its lease, and was paused
        right before the write, meets the file of the next holder, and changes nothing. Where it meets none, it takes
        its own file back: guards are checked once more after the write.

        Raises
        ------
        StoreError
            As `write_bytes`, or if others write the file all the time.
        """
        for left in reversed(range(_TRIES)):
            with suppress(FileExistsError):
                self._write(name, content, alone, new=True)
                self._take_back_if_lost(name, content)
                return
            if self.read_bytes(name) == content:
                return  # a try that timed out had succeeded
            if left:
                (self / name).remove()
        raise StoreError(f"{self.url}/{name} is written by others again and again.", "Let one of them go on.")

    def _take_back_if_lost(self, name: str, content: bytes) -> None:
        """Check all guards; if one does not hold, delete a file that this process has just written."""
        try:
            self.check()
        except StoreError:
            if self.read_bytes(name) == content:
                replace(self / name, guards=()).remove()
            raise

    def write_raw(self, name: str, *arrays: npt.NDArray[Any], named: bool) -> None:
        """Write arrays as they are into a file, not atomically.

        If a manifest will name the file (`named`), it is forced to the disk before that.
        """
        fs, path = self._filesystem()

        def write() -> None:
            self.check_way(name, "")  # a link there would be written through, where `replace` replaces it
            fs.makedirs(path, exist_ok=True)
            with fs.open(f"{path}/{name}", "wb") as f:
                for array in arrays:
                    f.write(array.data.cast("B") if array.size else b"")  # without a copy
            if named and "file" in fs.protocol:
                durability.wrote(f"{path}/{name}")

        self._change(write, name=name)

    def read_range(self, name: str, start: int, stop: int) -> bytes:
        """Read the bytes start..stop-1 of a file.

        Raises
        ------
        DamageError
            If the file is gone, or shorter.
        """
        fs, path = self._filesystem()
        content = b""
        with suppress(FileNotFoundError):
            if stop > start:
                content = self._with_retries(literal.read_range, fs, f"{path}/{name}", start, stop, name=name)
        if len(content) != stop - start:
            raise DamageError.of(f"{self.url}/{name}", f"lacks its bytes {start}..{stop - 1}")
        return content

    def read_manifest(self, name: str = MANIFEST) -> dict[str, Any] | None:
        """Return a manifest's content, or None where it was never finished.

        Raises
        ------
        DamageError
            If the manifest was changed after it was written.
        FormatError
            If it is of a format this version does not read.
        """
        return twice(partial(self._read_manifest, name))

    def _read_manifest(self, name: str) -> dict[str, Any] | None:
        content, url = self.read_bytes(name), f"{self.url}/{name}"
        if content is None:
            return None
        try:
            read = parsed(content)
        except ValueError as error:
            raise DamageError.of(url, f"is not JSON ({error})") from None
        values: dict[str, Any] = read if isinstance(read, dict) else {}
        checksum, version = values.pop(CHECKSUM, None), values.get("format_version")
        newer = isinstance(version, int) and version > FORMAT_VERSION  # with a checksum that may be another one
        if checksum is not None and not newer and checksum != checksum_of(values):
            raise DamageError.of(url, "is not what was written")
        if version != FORMAT_VERSION:
            raise FormatError(
                f"{url} has format_version={version!r}; this daskw2v reads {FORMAT_VERSION}.",
                "Open it with the daskw2v that wrote it, or give another work directory.",
            )
        if checksum is None:
            raise DamageError.of(url, "has no checksum")
        path = values.pop(PLACE, "")
        if path and not url.endswith(f"/{path}"):
            raise DamageError.of(url, FOREIGN)
        return values

    def write_manifest(self, values: dict[str, Any], name: str = MANIFEST, *, alone: bool = False) -> None:
        """Write a manifest that may replace an older one, as `write_bytes` does."""
        self.write_bytes(name, self._written(values, name), alone=alone)

    def finish_manifest(
        self, values: dict[str, Any], name: str = MANIFEST, *, portable: bool = False, alone: bool = False
    ) -> None:
        """Write a manifest as `create_bytes` does: the last act of a stage, which makes its data count.

        It belongs to this folder, or with `portable` to any.
        """
        self.create_bytes(name, self._written(values, name, portable=portable), alone=alone)

    def _written(self, values: dict[str, Any], name: str, *, portable: bool = False) -> bytes:
        """Return the content of a manifest; its place is the end of its path."""
        place = {PLACE: name if portable else f"{self.name}/{name}"}
        values = json.loads(json.dumps({"format_version": FORMAT_VERSION, **values, **place}, allow_nan=False))
        return json.dumps({**values, CHECKSUM: checksum_of(values)}, indent=1).encode()

    def create_manifest(self, values: dict[str, Any], name: str) -> None:
        """Write a manifest that names no data where there is none.

        Of several processes that try, one does, if the store knows how to.
        """
        with suppress(FileExistsError):
            self._write(name, self._written(values, name), alone=True, new=True)

    def _zarr_store(self, *, complete: bool = False, attempt: str = "") -> ZarrStore:
        if (local := self.local_path) is not None:
            store: ZarrStore = Folder(local, depth=self.depth)
        else:
            store = literal.LiteralStore.from_url(self.url, storage_options=self._fresh())
        return RetryingStore(store, self.url, self.timeout, complete=complete, attempt=attempt)

    def create_group(self, attributes: dict[str, Any] | None = None, attempt: str = "") -> zarr.Group:
        """Make an empty Zarr group here; delete everything that lies here first.

        Parameters
        ----------
        attributes
            The attributes of the group.
        attempt
            A random name for all that is written to it. With it the folder may be moved; without it, content belongs to
            the last two names of the folder.

        Raises
        ------
        StoreError
            If another process makes one at the same time.
        """
        self.remove()
        self.check()
        try:
            return zarr.create_group(self._zarr_store(attempt=attempt), zarr_format=3, attributes=attributes)
        except ContainsGroupError:
            raise StoreError(
                f"Another process has created {self.url} at the same time.", "Let one of the two go on."
            ) from None

    def open_group(self, *, writable: bool = False) -> zarr.Group:
        """Open the Zarr group that lies here.

        Raises
        ------
        DamageError
            If there is none, or its metadata were changed after they were written.
        """
        if writable:
            self.check()
        with suppress(FileNotFoundError, KeyError, ValueError, TypeError):  # an array, or no node of Zarr
            store = self._zarr_store(complete=not writable)
            return zarr.open_group(store, mode="r+" if writable else "r", zarr_format=3)
        # Without its cause: workers cannot send Zarr's own errors
        raise DamageError(
            f"{self.url} holds no Zarr group.",
            "Check the URL. In a work directory the same command makes again what can be made again.",
            url=self.url,
        )
