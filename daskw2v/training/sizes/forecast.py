"""What formulas of costs are made of: a cluster, a load, and the seconds of a run by what takes them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from daskw2v.types import Float64Array

RAW_WORD = 4  # bytes of a word's code
LINK = 1448 / 1514  # of a packet's bytes on a link are data: Ethernet, IP and TCP take the rest


@dataclass(frozen=True)
class Hardware:
    """A cluster.

    Parameters
    ----------
    name
        What it is called in a table.
    nodes, threads, processes
        Machines; training threads and worker processes of each.
    memory, network, bus, storage
        Of a node: bytes; and bytes/s each way to other nodes, to its memory, to the shared store.
    cores
        Of all nodes together, where nodes share them.
    """

    name: str
    nodes: int
    threads: int
    processes: int
    memory: float
    network: float
    bus: float = math.inf
    storage: float = math.inf
    cores: float = math.inf

    @property
    def slots(self) -> int:
        """Training threads of all nodes."""
        return self.nodes * self.threads

    def busy(self, threads: float) -> float:
        """Return how many of so many threads work at a time."""
        return min(threads, self.slots, self.cores)

    def a_byte(self, send: float) -> float:
        """Return the seconds of a byte that every node sends while it receives one, by its link or by its processes.

        `send` is what it takes a process to send one or to receive one.
        """
        shared = max(1.0, self.nodes * self.processes / self.cores)
        return max(1 / (self.network * LINK), 2 * send / self.processes * shared)


@dataclass(frozen=True, eq=False)
class Load:
    """What is trained; each is another one, so that what is known of it can be kept.

    Parameters
    ----------
    words, types
        Words of all epochs; words that have rows.
    d
        Dimensions of a vector.
    pairs
        Pairs of all epochs.
    top
        How often the most frequent words are in pairs, as shares of them all.
    more
        Rows besides those of both tables: those of words' features.
    """

    words: float
    types: int
    d: int
    pairs: float
    top: Float64Array
    more: int = 0

    @property
    def tables(self) -> float:
        """Bytes of all tables."""
        return (2.0 * self.types + self.more) * 4 * self.d


class Forecast(NamedTuple):
    """What training takes.

    Parameters
    ----------
    seconds
        Seconds by what takes them; "tasks" are the scheduler's, which works beside the workers.
    sent
        Bytes that nodes send each other.
    memory
        Bytes of a node.
    disk
        Bytes on disk.
    """

    seconds: Mapping[str, float]
    sent: float
    memory: float
    disk: float

    @property
    def work(self) -> float:
        """Seconds of the workers."""
        return sum(self.seconds.values()) - self.seconds["tasks"]

    @property
    def total(self) -> float:
        """Seconds of workers or scheduler, whichever takes longer."""
        return max(self.work, self.seconds["tasks"])
