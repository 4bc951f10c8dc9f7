"""What is measured of rounds while a model trains: tasks on the cluster, for which training does not wait."""

from collections.abc import Callable
from typing import Any, NamedTuple

from distributed import Client, Future

from daskw2v.cluster import first_done, gather
from daskw2v.progress import Listener, Progress

HistoryEntry = dict[str, Any]  # of a round


class _Measured(NamedTuple):
    """The entry that a result belongs to, its key there, what is measured, and the result in words."""

    entry: HistoryEntry
    key: str
    what: str
    told: Callable[[Any], str]


class Measurements:
    """Results of tasks, which are written into entries of the history.

    Parameters
    ----------
    client
        The cluster.
    listener
        Is told the results.
    """

    def __init__(self, client: Client, listener: Listener) -> None:
        self._client, self._listener = client, listener
        self._waiting: dict[Future, _Measured] = {}

    def add(self, future: Future, entry: HistoryEntry, key: str, what: str, told: Callable[[Any], str]) -> None:
        """Write a result into an entry when it is there; `told` makes the message of it."""
        self._waiting[future] = _Measured(entry, key, what, told)

    def pending(self, key: str) -> int:
        """Return the number of results of a key that are not there yet."""
        return sum(measured.key == key for measured in self._waiting.values())

    def knows(self, entry: HistoryEntry) -> bool:
        """Tell whether all results of an entry are there."""
        return not any(measured.entry is entry for measured in self._waiting.values())

    def finish(self) -> None:
        """Wait for all results."""
        while self._waiting:
            first_done(self._client, self._waiting)
            self.note()

    def note(self) -> None:
        """Write the results that are there by now."""
        for future in [future for future in self._waiting if future.done()]:
            entry, key, what, told = self._waiting.pop(future)
            try:
                (entry[key],) = gather(self._client, [future], what)
            except Exception as error:  # whatever it is, it must not cost the training
                self.say(f"round {entry['round']} could not be evaluated: {error}")
                continue
            self.say(f"round {entry['round']}: {told(entry[key])}")

    def say(self, message: str) -> None:
        """Send a message."""
        self._listener(Progress("evaluate", 0, 0, "", message=message))
