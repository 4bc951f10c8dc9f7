"""Links that take their time and lose packets, between the switch of `namespaces` and its hosts: a process of its own.

Kernels can do that (tc's netem), but few that containers run on have it. So each link is a pair of tap devices here,
whose packets wait in this process.

    python wire.py SECONDS LOSS PORT:PID...    (LOSS is the share of packets that are lost)
"""

import fcntl
import heapq
import os
import random
import selectors
import struct
import subprocess
import sys
import time

TUNSETIFF = 0x400454CA
TAP_WITHOUT_HEADER = 0x1002
FRAME = 1 << 16
BATCH = 64  # frames that are read before looking at the others


def tap(name: str) -> int:
    """Make a network device; what it sends is read from the file."""
    file = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(file, TUNSETIFF, struct.pack("16sH22x", name.encode(), TAP_WITHOUT_HEADER))
    return file


def link(port: str, pid: str) -> tuple[int, int]:
    """Make both ends of a link, the second as eth0 of a process's namespace."""
    ends = tap(port), tap(f"{port}far")
    subprocess.run(["ip", "link", "set", f"{port}far", "netns", pid, "name", "eth0"], check=True)
    return ends


def carry(peers: dict[int, int], seconds: float, loss: float) -> None:
    """Give each file what its peer got, so many seconds later, for ever; a share of it is lost."""
    draws = random.Random(0)
    selector = selectors.DefaultSelector()
    for file in peers:
        selector.register(file, selectors.EVENT_READ)
    waiting: list[tuple[float, int, int, bytes]] = []
    number = 0
    while True:
        patience = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        for key, _ in selector.select(patience):
            for _ in range(BATCH):
                try:
                    frame = os.read(key.fd, FRAME)
                except OSError:  # no more of them, or the device is down
                    break
                if draws.random() < loss:
                    continue
                number += 1
                heapq.heappush(waiting, (time.monotonic() + seconds, number, peers[key.fd], frame))
        while waiting and waiting[0][0] <= time.monotonic():
            _, _, file, frame = heapq.heappop(waiting)
            try:
                os.write(file, frame)
            except OSError:  # down, or full: a link may lose packets
                continue


def main() -> None:
    seconds, loss, *links = sys.argv[1:]
    pairs = [link(*named.split(":")) for named in links]
    print("ready", flush=True)
    carry({a: b for pair in pairs for a, b in (pair, pair[::-1])}, float(seconds), float(loss))


if __name__ == "__main__":
    main()
