"""What Dask adds to a plain socket: an array goes from a worker to another, on one machine and between two hosts.

The plain socket joins the same two processes: one sends the array's memory, the other receives it into new memory.
Seconds are from the request to the array on the other side. Processor seconds are those of both worker processes; where
others use the machine, these can be trusted. Two hosts are network namespaces, whose links have no limit.

    python -m benchmarks.transfer [--megabytes 100] [--times 7] [--json]
"""

import argparse
import resource
import socket
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from distributed import Client, LocalCluster, Worker, get_worker, wait
from distributed.security import Security

from benchmarks.common import alternate, finish, spread
from benchmarks.options import LEFT_OUT, Smoke, parsed
from daskw2v.training.rotation.bucket_task import OutputPartition
from tests.support import namespaces

ROW = 100  # dimensions of a vector
PARTITIONS = 4  # of a group
SMALL = 1000  # bytes of a message that costs next to nothing but its handling
PLAIN = "plain socket"


class Spent(NamedTuple):
    """Seconds of a transfer, and processor seconds of the worker that sends and of the one that receives."""

    seconds: float
    sender: float
    receiver: float


def processor_seconds(who: int = resource.RUSAGE_SELF) -> float:
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime


def array_of(size: int) -> Any:
    return np.ones(max(1, size // 4), np.float32)


def partitions_of(size: int) -> dict[int, OutputPartition]:
    """Return a group of output partitions, as strategy `rotation` sends it."""
    rows = max(1, size // PARTITIONS // (4 * ROW + 8))
    return {k: OutputPartition(np.ones((rows, ROW), np.float32), np.ones(rows, np.uint64)) for k in range(PARTITIONS)}


def by_dask(client: Client, make: Callable[[int], Any], size: int) -> Spent:
    """Let a worker make something, and another take it."""
    giver, taker = sorted(client.nthreads())
    made = client.submit(make, size, workers=[giver], pure=False)
    wait(made)
    before = client.run(processor_seconds)
    began = time.perf_counter()
    wait(client.submit(len, made, workers=[taker], pure=False))
    seconds = time.perf_counter() - began
    after = client.run(processor_seconds)
    return Spent(seconds, *(after[name] - before[name] for name in (giver, taker)))


def by_socket(client: Client, size: int) -> Spent:
    """Let a thread of a worker send an array to a thread of the other."""
    giver, taker = sorted(client.nthreads())
    address = client.run(listen, workers=[taker])[taker]
    received = client.submit(receive, size, workers=[taker], pure=False)
    seconds, sender = client.submit(send, size, address, workers=[giver], pure=False).result()
    return Spent(seconds, sender, received.result())


def listen(dask_worker: Worker) -> tuple[str, int]:
    """Open a port for one connection; return its address."""
    dask_worker.transfer_listener = socket.create_server((dask_worker.address.split("://")[1].rpartition(":")[0], 0))
    address: tuple[str, int] = dask_worker.transfer_listener.getsockname()
    return address


def receive(size: int) -> float:
    """Receive an array; return the processor seconds of that."""
    with get_worker().transfer_listener as listener, listener.accept()[0] as connection:
        connection.sendall(b"ready")
        before = processor_seconds(resource.RUSAGE_THREAD)
        rest = np.empty(size, np.uint8).data
        while rest:
            rest = rest[connection.recv_into(rest) :]
        connection.sendall(b"done")
        return processor_seconds(resource.RUSAGE_THREAD) - before


def send(size: int, address: tuple[str, int]) -> tuple[float, float]:
    """Send an array; return seconds and processor seconds of that."""
    memory = np.ones(size, np.uint8).data
    with socket.create_connection(address) as connection:
        connection.recv(len(b"ready"))
        before, began = processor_seconds(resource.RUSAGE_THREAD), time.perf_counter()
        connection.sendall(memory)
        used = processor_seconds(resource.RUSAGE_THREAD) - before
        connection.recv(len(b"done"))
        return time.perf_counter() - began, used


def seconds_a_byte(client: Client, least: int = 8_000_000, most: int = 64_000_000, times: int = 9) -> float:
    """Return the processor seconds of a byte on one side, on average, without what a transfer costs at any size."""

    def side(size: int) -> float:
        spent = (by_dask(client, array_of, size) for _ in range(times))
        return statistics.median(s.sender + s.receiver for s in spent) / 2

    return (side(most) - side(least)) / (most - least)


@contextmanager
def workers(protocol: str) -> Iterator[Client]:
    """Give two workers of this machine by a protocol of Dask's."""
    security = Security.temporary() if protocol == "tls" else None
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, protocol=f"{protocol}://", security=security, memory_limit=0,
            dashboard_address=":0",
        ) as cluster,
        Client(cluster) as client,
    ):  # fmt: skip
        yield client


@contextmanager
def hosts() -> Iterator[Client]:
    """Give a worker on each of two hosts."""
    with namespaces.cluster(2) as cluster:
        yield cluster.client


Way = Callable[[Client, int], Spent]
DASK: Mapping[str, Way] = {
    "array": lambda client, size: by_dask(client, array_of, size),
    "output partitions": lambda client, size: by_dask(client, partitions_of, size),
}
PLACES: Mapping[str, tuple[Callable[[], Any], Mapping[str, Way]]] = {
    "tcp": (partial(workers, "tcp"), {PLAIN: by_socket, **DASK}),
    "tcp, two hosts": (hosts, {PLAIN: by_socket, **DASK}),
    "tls": (partial(workers, "tls"), DASK),
    "ws": (partial(workers, "ws"), DASK),
}


def measure(client: Client, ways: Mapping[str, Way], size: int, times: int) -> dict[str, list[Spent]]:
    """Send by each way in turn."""
    for way in ways.values():
        way(client, size)  # connects
    return alternate({name: partial(way, client, size) for name, way in ways.items()}, times)


SMOKE = Smoke({"megabytes": 1, "times": 1}, (PLAIN, *DASK, "tcp", "tls", "ws"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--times", type=int, default=7)
    options = parsed(parser, SMOKE)
    out, rows = sys.stderr if options.json else sys.stdout, list[dict[str, Any]]()
    lacking, size, plain = namespaces.missing(), options.megabytes * 1_000_000, dict[str, Spent]()
    columns = "seconds | of plain | sender, ns a byte | receiver, ns a byte | both, of plain | a small one, ms of both"
    print(f"{options.megabytes} MB\n\n| by | what | {columns} |\n|{'---|' * 8}", file=out)
    for place, (cluster, ways) in PLACES.items():
        if lacking and cluster is hosts:
            print(f"{LEFT_OUT}{place}: {lacking}", file=out)
            continue
        with cluster() as client:
            large, small = (measure(client, ways, n, options.times) for n in (size, SMALL))
        for name, spent in large.items():
            s = Spent(*(statistics.median(values) for values in zip(*spent, strict=True)))
            if name == PLAIN:
                plain[place] = s
            base = plain.get(place, plain["tcp"])
            both = s.sender + s.receiver
            of_plain = s.seconds / base.seconds, both / (base.sender + base.receiver)
            handling = statistics.median(one.sender + one.receiver for one in small[name])
            print(
                f"| {place} | {name} | {s.seconds:.3f} ({spread([one.seconds for one in spent])}) | {of_plain[0]:.2f} "
                f"| {s.sender / size * 1e9:.3f} | {s.receiver / size * 1e9:.3f} | {of_plain[1]:.2f} "
                f"| {handling * 1e3:.2f} |",
                file=out, flush=True,
            )  # fmt: skip
            rows.append({"by": place, "what": name, **s._asdict(), "of plain": of_plain, "small": handling})
    finish(rows, out, as_json=options.json)


if __name__ == "__main__":
    main()
