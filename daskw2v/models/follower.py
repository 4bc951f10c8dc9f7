"""Reloads the served version of a model while a program runs."""

import logging
import os
import threading
import weakref
from collections.abc import Mapping
from functools import partial
from types import TracebackType
from typing import Any, NoReturn, Self

from daskw2v.errors import ParameterError, StoreError
from daskw2v.models.queries.vectors import Vectors
from daskw2v.models.versions.versions import Versions
from daskw2v.safe_text import escaped, masked
from daskw2v.store.retries import TIMEOUT
from daskw2v.store.urls import Location

_log = logging.getLogger(__name__)


class Follower:
    """Follows the served version of a model.

    A daemon thread polls the work directory. A new version is loaded completely before it replaces the current one. If
    it cannot be opened (damaged, or deleted meanwhile), the current version stays, the failure is logged and available
    as `error`, and the next poll tries again.

    While a version is being opened, two are in memory.

    A process that is forked has a follower of its own, which polls there until it is closed there.

    Parameters
    ----------
    work
        The work directory.
    storage_options
        Options for fsspec.
    version
        Name or tag of a version to follow instead of the served one. A tag may move to another version.
    interval
        Seconds between two polls.
    in_memory
        As in `Vectors.open`. If rows stay in the store, queries fail once their version is deleted.
    opened_as
        `IndexedVectors` to use each version's index; a version is then loaded once its index is built.
    store_timeout
        Seconds to wait for each answer of the store.

    Raises
    ------
    ParameterError
        If the interval is not above 0.
    StoreError
        If there is no finished model, or it cannot be opened.
    VocabularyError
        If its vocabulary is damaged.

    Examples
    --------
    >>> import daskw2v
    >>> with daskw2v.Follower("work", interval=60) as follower:
    ...     "king" in follower.vectors
    True
    """

    def __init__(
        self,
        work: Location,
        storage_options: Mapping[str, Any] | None = None,
        *,
        version: str = "LATEST",
        interval: float = 10.0,
        in_memory: bool | None = None,
        opened_as: type[Vectors] = Vectors,
        store_timeout: float = TIMEOUT,
    ) -> None:
        if not interval > 0:
            raise ParameterError(f"interval={interval!r} is not above 0.", "Give seconds, such as 10.")
        self._versions = Versions.open(work, storage_options, store_timeout)
        self._wanted, self._open = version, partial(opened_as.open, in_memory=in_memory, store_timeout=store_timeout)
        self._error: Exception | None = None
        self._interval = interval
        pinned = None if version == "LATEST" else version
        self._vectors = self._prepare(self._open(work, storage_options, version=pinned))
        self._start_polling()
        _open_followers.add(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise ParameterError(
            f"{self!r} can be neither pickled nor copied: its thread polls in this process.",
            "Send follower.vectors, the current version, or make a Follower in each process and close it there.",
        )

    def __repr__(self) -> str:
        return f"Follower({self._versions.work.url!r}, version={self.version!r})"

    @property
    def vectors(self) -> Vectors:
        """The current version. For queries that belong together, get it once, as a poll may replace it.

        Examples
        --------
        >>> import daskw2v
        >>> with daskw2v.Follower("work") as follower:
        ...     vectors = follower.vectors
        ...     vectors["king"].shape == vectors["queen"].shape
        True
        """
        return self._vectors

    @property
    def version(self) -> str:
        """Name of the current version.

        Examples
        --------
        >>> import daskw2v
        >>> with daskw2v.Follower("work") as follower:
        ...     follower.version
        'v0002-b'
        """
        return (self._vectors.url or "").rpartition("/")[2]

    @property
    def error(self) -> Exception | None:
        """The error of the last poll; None if it succeeded.

        Examples
        --------
        >>> import daskw2v
        >>> with daskw2v.Follower("work") as follower:
        ...     follower.look(), follower.error
        (False, None)
        """
        return self._error

    def look(self) -> bool:
        """Poll now; return whether the current version has changed. A failure is not raised but kept in `error`.

        Examples
        --------
        >>> import daskw2v
        >>> with daskw2v.Follower("work", interval=60) as follower:
        ...     _ = daskw2v.Versions.open("work").publish("v0001-a")
        ...     follower.look(), follower.version
        (True, 'v0001-a')
        """
        with self._lock:
            try:
                newer_version = self._open_newer()
            except Exception as error:  # of any kind: the current version stays
                self._keep_error(error)
                return False
            self._error = None
            if newer_version is None or self._closed.is_set():
                return False
            _log.info("%s replaces %s", escaped(str(newer_version.url)), escaped(self.version))
            self._vectors = newer_version
            return True

    def close(self) -> None:
        """Stop polling; `vectors` stays usable.

        Examples
        --------
        >>> import daskw2v
        >>> follower = daskw2v.Follower("work")
        >>> follower.close()
        >>> len(follower.vectors) > 0
        True
        """
        _open_followers.discard(self)
        self._closed.set()

    def _start_polling(self) -> None:
        """Start the polling thread of this process; a fork copies no thread, and copies locks that are held."""
        self._lock, self._closed = threading.Lock(), threading.Event()
        threading.Thread(target=self._poll, name="daskw2v-follower", daemon=True).start()

    def _poll(self) -> None:
        """Poll at each interval until the follower is closed."""
        while not self._closed.wait(self._interval):
            self.look()

    def _open_newer(self) -> Vectors | None:
        """Open and return the followed version; None if it is open already. Raise StoreError if it no longer exists."""
        name, models = self._versions.name_of(self._wanted), self._versions.models
        if name is None:
            raise StoreError(f"{models.url} has no version {self._wanted!r} any more.", "Publish or tag a version.")
        if name == self.version:
            return None
        folder = models / name
        return self._prepare(self._open(folder.url, folder.options))

    @staticmethod
    def _prepare(vectors: Vectors) -> Vectors:
        """Compute what queries need of vectors, lengths and word order, so that damage raises now; return them."""
        if vectors.in_memory:
            vectors.norms  # noqa: B018
        vectors.vocabulary.find("")
        return vectors

    def _keep_error(self, error: Exception) -> None:
        """Keep the error of a poll in `error`, and log it if the previous poll had none or another."""
        if str(error) != str(self._error):
            _log.warning("%s is served on: %s", escaped(self.version), escaped(masked(str(error))))
        self._error = error


_open_followers = weakref.WeakSet[Follower]()


def _restart_followers() -> None:
    """Start the threads of all open followers in a forked process."""
    for follower in list(_open_followers):
        follower._start_polling()


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=_restart_followers)
