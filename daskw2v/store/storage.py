"""A store: JSON manifests and Zarr groups below one fsspec URL, which hold everything that is written.

This module has the rules that keep data consistent: a manifest is written last and atomically, an array is written by
one task, or by several along chunk bounds, and nothing is pickled.
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
from daskw2v.store.checksums import CHECKSUM, FOREIGN, LOCATION, compute_checksum, retry_damaged
from daskw2v.store.folder import Folder
from daskw2v.store.limits import MAX_MANIFEST, check_file, check_links, check_name, parse_json, refused
from daskw2v.store.retries import TIMEOUT, RetryingStore, with_retries
from daskw2v.store.urls import as_url, filesystem, make_absolute

T = TypeVar("T")
FORMAT_VERSION = 1
MANIFEST = "manifest.json"
_TRIES = 3  # tries to create a file that other processes write, too


class Guard(Protocol):
    """A condition that has to hold before a store writes or deletes, such as `lease.Token`."""

    def check(self) -> None:
        """Raise a StoreError if the condition does not hold."""


@dataclass(frozen=True)
class Store:
    """A folder at an fsspec URL; cheap to create, safe to send to a worker.

    Parameters
    ----------
    url
        Any fsspec URL or local path; a relative path, or one below ~, is made absolute.
    options
        Options for fsspec. They may hold secrets, so they are never written or shown.
    timeout
        Seconds that each call may take; a call that fails or takes longer is repeated several times.
    guards
        Conditions that are checked before each write and deletion, but not before each chunk of an array.
    depth
        Number of names at the end of the URL below the folder that the user named: if one of these is a link, nothing
        is written or deleted through it.

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
        # A worker may have another current directory
        url = make_absolute(as_url(self.url, "url"))
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
        """Return fsspec's filesystem of the URL, and the path in it."""
        fs, path = filesystem(self.url, self._uncached_options())
        literal.check_literal(fs, path)
        return fs, path

    def _uncached_options(self) -> dict[str, Any]:
        """Return the options for a filesystem that caches no listings, as other machines write, too."""
        return {"use_listings_cache": False, **self.options}

    @property
    def local_path(self) -> str | None:
        """The path on this machine; None if the store is on no filesystem of this machine."""
        fs, path = self._filesystem()
        return path if "file" in fs.protocol else None

    def check_links(self, *names: str) -> None:
        """Refuse links on the path of this folder, or of a file in it, as `limits.check_links` does.

        `names` are the parts of the file's path below this folder.
        """
        if (local := self.local_path) is not None:
            check_links("/".join((local, *names)), self.depth + sum(name.count("/") + 1 for name in names))

    def _with_retries(self, function: Callable[..., T], *args: Any, name: str = "", **options: Any) -> T:
        """Return the result of `function(*args)`, called with retries; `name` is the file in messages, if any."""
        location = f"{self.url}/{name}" if name else self.url
        return with_retries(function, *args, location=location, timeout=self.timeout, **options)

    def _change(self, function: Callable[..., T], *args: Any, name: str = "") -> T:
        """Call a function that writes or deletes a file, or this folder, with retries.

        Guards and links are checked before each try. `name` is the file's, "" for this folder.
        """

        def change() -> T:
            self.check_links(*filter(None, (name,)))
            return function(*args)

        return self._with_retries(change, name=name, before=self.check)

    def exists(self) -> bool:
        """Return whether a file or folder exists at the URL."""
        fs, path = self._filesystem()
        return bool(self._with_retries(fs.exists, path))

    def children(self) -> list[str]:
        """Return the names of the files and folders in this folder, sorted; none if the folder does not exist."""
        fs, path = self._filesystem()
        try:
            paths = self._with_retries(partial(fs.ls, path, detail=False))
            return sorted(p.rstrip("/").rsplit("/", 1)[-1] for p in paths)
        except (FileNotFoundError, NotADirectoryError):
            return []

    def size(self, name: str) -> int | None:
        """Return the size of a file in bytes; None if it does not exist."""
        fs, path = self._filesystem()
        try:
            return int(self._with_retries(fs.info, f"{path}/{name}", name=name)["size"])
        except FileNotFoundError:
            return None

    def sizes(self) -> dict[str, int]:
        """Return the size in bytes of each file below the URL, by the file's path relative to it."""
        fs, path = self._filesystem()
        entries = self._with_retries(partial(fs.find, path, detail=True))
        start = len(path.rstrip("/")) + 1
        return {name[start:]: int(entry["size"]) for name, entry in entries.items()}

    def remove(self) -> None:
        """Delete the file or folder at the URL, with everything below it, if it exists.

        On this machine it is renamed first, so that it vanishes as a whole, and a file or folder that another process
        creates at the URL meanwhile stays. Guards are checked once more after that: if one does not hold, it is renamed
        back. The next deletion of the URL completes an interrupted one.
        """
        fs, path = self._filesystem()
        is_local = "file" in fs.protocol
        self._change(partial(literal.remove_local, path, self.check) if is_local else partial(literal.remove, fs, path))

    def force_names(self) -> None:
        """Force the names in this folder to a local disk, so that deleted files stay deleted.

        Raises as `durability.force_names` does.
        """
        if (local := self.local_path) is not None:
            durability.force_names(local)

    def read_bytes(self, name: str, max_bytes: int = MAX_MANIFEST) -> bytes | None:
        """Return a small file's content; None if the file does not exist.

        Raises
        ------
        StoreError
            If the file has more than `max_bytes` bytes; no more are read.
        """
        fs, path = self._filesystem()

        def read() -> bytes:
            if "file" in fs.protocol:
                check_file(path, name, max_bytes)
            return literal.read_range(fs, f"{path}/{name}", 0, max_bytes + 1)

        try:
            content = self._with_retries(read, name=name)
        except (FileNotFoundError, NotADirectoryError):
            return None
        if len(content) > max_bytes:
            raise refused(f"{self.url}/{name}", f"has more than {max_bytes:,} bytes")
        return content

    def write_bytes(self, name: str, content: bytes, *, alone: bool = False) -> None:
        """Write a small file atomically: readers see the old content or the new, never a part.

        On a local disk, all that this process wrote before is forced to the disk before the file is; with `alone` only
        the file itself is forced.

        Raises
        ------
        StoreError
            If the store refuses the write (no space, no permission), or does not answer; or as
            `durability.force_files` does.
        """
        self._write(name, content, alone, new=False)

    def _write(self, name: str, content: bytes, alone: bool, *, new: bool) -> None:
        """Write a small file; with `new` raise a FileExistsError if the file exists."""
        fs, path = self._filesystem()
        if "file" not in fs.protocol:  # object stores put whole objects
            write = partial(fs.pipe_file, f"{path}/{name}", content, **({"mode": "create"} if new else {}))
        else:
            move = os.link if new else os.replace
            write = partial(durability.replace_file, f"{path}/{name}", content, move, alone=alone)
        self._change(write, name=name)

    def create_bytes(self, name: str, content: bytes, *, alone: bool = False) -> None:
        """Write a small file as `write_bytes` does, but delete an existing file first, and never write over one.

        The existing file is deleted while the guards hold. So a process that lost its lease, and was paused right
        before the write, fails on the file of the next holder, and changes nothing. If there is no such file, the
        process deletes the file that it wrote: guards are checked once more after the write.

        Raises
        ------
        StoreError
            As `write_bytes`, or if other processes write the file again and again.
        """
        for tries_left in reversed(range(_TRIES)):
            with suppress(FileExistsError):
                self._write(name, content, alone, new=True)
                self._remove_if_lost(name, content)
                return
            if self.read_bytes(name) == content:
                return  # a try that timed out had succeeded
            if tries_left:
                (self / name).remove()
        raise StoreError(f"{self.url}/{name} is written by others again and again.", "Let one of them go on.")

    def _remove_if_lost(self, name: str, content: bytes) -> None:
        """Check all guards; if one does not hold, delete a file that this process has just written, and raise."""
        try:
            self.check()
        except StoreError:
            if self.read_bytes(name) == content:
                replace(self / name, guards=()).remove()
            raise

    def write_raw(self, name: str, *arrays: npt.NDArray[Any], named: bool) -> None:
        """Write the bytes of arrays, one after the other, to a file, not atomically.

        With `named` the file is forced to the disk before the next manifest is written: if a manifest will name it.
        """
        fs, path = self._filesystem()

        def write() -> None:
            self.check_links(name, "")  # the file itself, too: `open` would write through a link
            fs.makedirs(path, exist_ok=True)
            with fs.open(f"{path}/{name}", "wb") as f:
                for array in arrays:
                    f.write(array.data.cast("B") if array.size else b"")  # without a copy
            if named and "file" in fs.protocol:
                durability.note_written(f"{path}/{name}")

        self._change(write, name=name)

    def read_range(self, name: str, start: int, stop: int) -> bytes:
        """Return the bytes start..stop-1 of a file.

        Raises
        ------
        DamageError
            If the file is missing or too short.
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
        """Return the values of a manifest; None if it does not exist.

        Raises
        ------
        DamageError
            If the manifest was changed after it was written.
        FormatError
            If the manifest is of a format that this version does not read.
        """
        return retry_damaged(partial(self._read_manifest, name))

    def _read_manifest(self, name: str) -> dict[str, Any] | None:
        """Read a manifest once, as `read_manifest` describes."""
        content, url = self.read_bytes(name), f"{self.url}/{name}"
        if content is None:
            return None
        try:
            read = parse_json(content)
        except ValueError as error:
            raise DamageError.of(url, f"is not JSON ({error})") from None
        values: dict[str, Any] = read if isinstance(read, dict) else {}
        checksum, version = values.pop(CHECKSUM, None), values.get("format_version")
        newer = isinstance(version, int) and version > FORMAT_VERSION  # with a checksum that may be another one
        if checksum is not None and not newer and checksum != compute_checksum(values):
            raise DamageError.of(url, "is not what was written")
        if version != FORMAT_VERSION:
            problem = f"{url} has format_version={version!r}; this daskw2v reads {FORMAT_VERSION}."
            raise FormatError(problem, "Open it with the daskw2v that wrote it, or give another work directory.")
        if checksum is None:
            raise DamageError.of(url, "has no checksum")
        path = values.pop(LOCATION, "")
        if path and not url.endswith(f"/{path}"):
            raise DamageError.of(url, FOREIGN)
        return values

    def write_manifest(self, values: dict[str, Any], name: str = MANIFEST, *, alone: bool = False) -> None:
        """Write a manifest, which may replace an older one, as `write_bytes` does."""
        self.write_bytes(name, self._encode_manifest(values, name), alone=alone)

    def finish_manifest(
        self, values: dict[str, Any], name: str = MANIFEST, *, portable: bool = False, alone: bool = False
    ) -> None:
        """Write the manifest that declares a result finished, as `create_bytes` does: an existing one is replaced.

        The manifest is valid only in folders with this folder's name, or with `portable` in any folder.
        """
        self.create_bytes(name, self._encode_manifest(values, name, portable=portable), alone=alone)

    def _encode_manifest(self, values: dict[str, Any], name: str, *, portable: bool = False) -> bytes:
        """Return the content of a manifest, with its checksum and the end of its path, at which it is valid."""
        location = {LOCATION: name if portable else f"{self.name}/{name}"}
        values = json.loads(json.dumps({"format_version": FORMAT_VERSION, **values, **location}, allow_nan=False))
        return json.dumps({**values, CHECKSUM: compute_checksum(values)}, indent=1).encode()

    def create_manifest(self, values: dict[str, Any], name: str) -> None:
        """Write a manifest that names no data, unless it exists.

        Of several processes that write it at once, one succeeds, if the store supports exclusive creation.
        """
        with suppress(FileExistsError):
            self._write(name, self._encode_manifest(values, name), alone=True, new=True)

    def _zarr_store(self, *, complete: bool = False, attempt: str = "") -> ZarrStore:
        """Return a Zarr store of this folder; arguments are as in `RetryingStore`."""
        if (local := self.local_path) is not None:
            store: ZarrStore = Folder(local, depth=self.depth)
        else:
            store = literal.LiteralStore.from_url(self.url, storage_options=self._uncached_options())
        return RetryingStore(store, self.url, self.timeout, complete=complete, attempt=attempt)

    def create_group(self, attributes: dict[str, Any] | None = None, attempt: str = "") -> zarr.Group:
        """Create an empty Zarr group in this folder, after everything in it was deleted.

        Parameters
        ----------
        attributes
            The attributes of the group.
        attempt
            A random name for everything that is written to the group. With it the folder may be moved; without it, the
            content is valid only in folders with the same last two names.

        Raises
        ------
        StoreError
            If another process creates a group at the same time.
        """
        self.remove()
        self.check()
        try:
            return zarr.create_group(self._zarr_store(attempt=attempt), zarr_format=3, attributes=attributes)
        except ContainsGroupError:
            problem = f"Another process has created {self.url} at the same time."
            raise StoreError(problem, "Let one of the two go on.") from None

    def open_group(self, *, writable: bool = False) -> zarr.Group:
        """Return the Zarr group in this folder, read-only unless `writable`.

        Raises
        ------
        DamageError
            If there is no group, or its metadata were changed after they were written.
        """
        if writable:
            self.check()
        with suppress(FileNotFoundError, KeyError, ValueError, TypeError):  # an array, or no Zarr node
            store = self._zarr_store(complete=not writable)
            return zarr.open_group(store, mode="r+" if writable else "r", zarr_format=3)
        # Without its cause: workers cannot send Zarr's own errors
        raise DamageError(
            f"{self.url} holds no Zarr group.",
            "Check the URL. In a work directory the same command makes again what can be made again.",
            url=self.url,
        )
