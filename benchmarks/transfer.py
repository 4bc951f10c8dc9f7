"""What Dask adds to a plain socket: an array goes from a worker to another of the same machine, by Dask's protocols.

With the plain socket a thread sends the array's memory, and another receives it into new memory. Seconds are from the
request to the array on the other side. Processor seconds are those of both sides, with Dask of the worker processes;
where others use the machine, these can be trusted.

    python -m benchmarks.transfer [--megabytes 100] [--times 7]
"""

import argparse
import resource
import socket
import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from distributed import Client, LocalCluster, wait
from distributed.security import Security

from benchmarks.harness import Benchmark, Session, Smoke, alternate
from benchmarks.tables import Spread
from benchmarks.texts import MB

SMALL = 1000  # bytes of a message that costs next to nothing but its handling
PLAIN, PROTOCOLS = "plain socket", ("tcp", "tls", "ws")


class Spent(NamedTuple):
    """Seconds of a transfer, and processor seconds of the side that sends and of the one that receives."""

    seconds: float
    sender: float
    receiver: float


def processor_seconds(who: int = resource.RUSAGE_SELF) -> float:
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime


def array_of(size: int) -> Any:
    return np.ones(max(1, size // 4), np.float32)


def by_dask(client: Client, size: int) -> Spent:
    """Let a worker make an array, and another take it."""
    giver, taker = sorted(client.nthreads())
    made = client.submit(array_of, size, workers=[giver], pure=False)
    wait(made)
    before = client.run(processor_seconds)
    began = time.perf_counter()
    wait(client.submit(len, made, workers=[taker], pure=False))
    seconds = time.perf_counter() - began
    after = client.run(processor_seconds)
    return Spent(seconds, *(after[name] - before[name] for name in (giver, taker)))


def by_socket(size: int) -> Spent:
    """Let a thread send an array to another."""
    memory, began = array_of(size), time.perf_counter()
    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as pool:
        receiver = pool.submit(receive, listener, memory.nbytes)
        with socket.create_connection(listener.getsockname()) as connection:
            before = processor_seconds(resource.RUSAGE_THREAD)
            connection.sendall(memory)
            sender = processor_seconds(resource.RUSAGE_THREAD) - before
        used = receiver.result()
        return Spent(time.perf_counter() - began, sender, used)


def receive(listener: socket.socket, size: int) -> float:
    """Receive an array; return the processor seconds of that."""
    with listener.accept()[0] as connection:
        before = processor_seconds(resource.RUSAGE_THREAD)
        rest = np.empty(size, np.uint8).data
        while rest:
            rest = rest[connection.recv_into(rest) :]
        return processor_seconds(resource.RUSAGE_THREAD) - before


def seconds_a_byte(client: Client, least: int = 8_000_000, most: int = 64_000_000, times: int = 9) -> float:
    """Return the processor seconds of a byte on one side, on average, without what a transfer costs at any size."""

    def side(size: int) -> float:
        spent = (by_dask(client, size) for _ in range(times))
        return statistics.median(s.sender + s.receiver for s in spent) / 2

    return (side(most) - side(least)) / (most - least)


@contextmanager
def workers(protocol: str) -> Iterator[Client]:
    """Give two workers of this machine by a protocol of Dask's."""
    how = {"protocol": f"{protocol}://", "security": Security.temporary() if protocol == "tls" else None}
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, memory_limit=0, dashboard_address=":0", **how) as cluster,
        Client(cluster) as client,
    ):
        yield client


def measure(session: Session) -> None:
    size, plain = session.options.megabytes * MB, None
    session.text = f"an array of {session.options.megabytes} MB"
    columns = ("s", "of plain", "sender, ns a byte", "receiver, ns a byte", "both, of plain", "a small one, ms of both")
    table = session.table("A transfer", columns)
    with ExitStack() as stack:
        ways: dict[str, Callable[[int], Spent]] = {PLAIN: by_socket}
        ways |= {name: partial(by_dask, stack.enter_context(workers(name))) for name in PROTOCOLS}
        for way in ways.values():
            way(SMALL)  # connects
        large, small = (
            alternate({name: partial(way, n) for name, way in ways.items()}, session.options.times)
            for n in (size, SMALL)
        )
    for name, spent in large.items():
        seconds, sender, receiver = map(Spread.of, zip(*spent, strict=True))
        both = statistics.median(one.sender + one.receiver for one in spent)
        plain = plain or (seconds.middle, both)
        table.row(
            name, seconds, seconds.middle / plain[0], sender.scaled(1e9 / size), receiver.scaled(1e9 / size),
            both / plain[1], Spread.of(1e3 * (one.sender + one.receiver) for one in small[name]),
        )  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--times", type=int, default=7)


BENCHMARK = Benchmark(
    __doc__,
    ("daskw2v/cluster",),
    Smoke({"megabytes": 1, "times": 1}, (PLAIN, *PROTOCOLS)),
    add_arguments,
    measure,
)

if __name__ == "__main__":
    BENCHMARK.main()
