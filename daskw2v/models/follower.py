"""Readers that follow a work directory: what is served there is served here, without a restart."""

import logging
import threading
from collections.abc import Mapping
from functools import partial
from types import TracebackType
from typing import Any, Self

import numpy as np

from daskw2v.errors import ParameterError, StoreError
from daskw2v.locations import Location
from daskw2v.models.vectors import Vectors
from daskw2v.models.versions import Versions
from daskw2v.steady import PATIENCE

_log = logging.getLogger(__name__)


class Follower:
    """The version of a model that is served, and each one after it.

    A daemon thread looks at the work directory. Another version is opened, with all that its queries need, before it
    takes the place of the one at hand. What cannot be opened (it is damaged, or was deleted meanwhile) leaves the one
    at hand where it is, is logged and told by `error`, and is tried again at the next look.

    While a version is opened, two are in memory.

    Parameters
    ----------
    work
        The work directory.
    storage_options
        Options for fsspec.
    version
        Name or tag of a version, instead of the one that is served: a name stays what it is, a tag may move.
    interval
        Seconds between two looks.
    in_memory
        As in `Vectors.open`. Rows that are left in the store are gone when their version is deleted.
    opened_as
        `IndexedVectors` to ask each version's index; a version comes once its index is built.
    store_timeout
        Seconds to wait for each answer of where it lies.

    Raises
    ------
    ParameterError
        If the interval is not above 0.
    StoreError
        If there is no finished model, or it cannot be opened: there is nothing to serve then.
    VocabularyError
        If its vocabulary is damaged.
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
        store_timeout: float = PATIENCE,
    ) -> None:
        if not interval > 0:
            raise ParameterError(f"interval={interval!r} is not above 0.", "Give seconds, such as 10.")
        self._versions = Versions.open(work, storage_options, store_timeout)
        self._wanted, self._open = version, partial(opened_as.open, in_memory=in_memory, store_timeout=store_timeout)
        self._error: Exception | None = None
        self._looking, self._closed = threading.Lock(), threading.Event()
        pinned = None if version == "LATEST" else version
        self._vectors = self._ready(self._open(work, storage_options, version=pinned))
        threading.Thread(target=self._follow, args=(interval,), name="daskw2v-follower", daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Follower({self._versions.work.url!r}, version={self.version!r})"

    @property
    def vectors(self) -> Vectors:
        """The version at hand: take it once for what belongs together, since the next look may replace it."""
        return self._vectors

    @property
    def version(self) -> str:
        """The name of the version at hand."""
        return _name(self._vectors)

    @property
    def error(self) -> Exception | None:
        """Why the last look did not come to the version that is served; None where it did."""
        return self._error

    def look(self) -> bool:
        """Look now, and tell whether another version has come; what fails is told by `error`, and not raised."""
        with self._looking:
            try:
                found = self._other()
            except Exception as error:  # whatever it is: the version at hand is served on
                self._tell(error)
                return False
            self._error = None
            if found is None or self._closed.is_set():
                return False
            _log.info("%s takes the place of %s", found.url, self.version)
            self._vectors = found
            return True

    def close(self) -> None:
        """Stop looking; the version at hand can still be used."""
        self._closed.set()

    def _follow(self, interval: float) -> None:
        while not self._closed.wait(interval):
            self.look()

    def _other(self) -> Vectors | None:
        """Open the version that is wanted, if it is not the one at hand."""
        name, models = self._versions.name_of(self._wanted), self._versions.models
        if name is None:
            raise StoreError(f"{models.url} has no version {self._wanted!r} any more.", "Publish or tag a version.")
        if name == self.version:
            return None
        place = models / name
        return self._ready(self._open(place.url, place.options))

    @staticmethod
    def _ready(vectors: Vectors) -> Vectors:
        """Compute what the first query would: it shall not wait, and what is damaged shall not be served."""
        if isinstance(vectors.vectors, np.ndarray):
            vectors.norms  # noqa: B018
        vectors.vocabulary.find("")
        return vectors

    def _tell(self, error: Exception) -> None:
        if str(error) != str(self._error):  # once, and not at each look
            _log.warning("%s is served on: %s", self.version, error)
        self._error = error


def _name(vectors: Vectors) -> str:
    return (vectors.url or "").rsplit("/", 1)[-1]
