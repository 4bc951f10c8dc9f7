"""Memory that is used again."""

import gc
import threading
import time

import numpy as np

from daskw2v.kernels.buffers import Buffers

N = 1 << 20


def address(array):
    return array.__array_interface__["data"][0]


def test_take__gives_what_was_freed():
    buffers = Buffers()
    first = buffers.empty(N)
    other = buffers.empty(N)
    place = address(first)
    assert address(other) != place
    assert not buffers.waiting_bytes
    del first
    gc.collect()
    assert buffers.waiting_bytes == 4 * N
    assert address(buffers.empty(3 * N)) != place, "another size"
    assert address(buffers.empty(N - 1000)) == place, "of as many huge pages"


def test_empty__does_not_reuse_memory_that_a_view_uses():
    buffers = Buffers()
    room = buffers.empty(N)
    view = room.reshape(-1, 16)[7:, :5].view(type("Other", (np.ndarray,), {}))
    del room
    gc.collect()
    assert not buffers.waiting_bytes
    view[:] = 3
    other = buffers.empty(N)
    other[:] = 0
    assert (view == 3).all()
    del view
    gc.collect()
    assert buffers.waiting_bytes


def test_take__begins_on_a_cache_line_whatever_its_size():
    buffers = Buffers()
    for n in (1, 100, 600_000, N):
        room = buffers.empty(n)
        assert (room.shape, room.dtype, address(room) % 64) == ((n,), np.float32, 0)


def test_waiting__ends():
    buffers = Buffers(idle=0.1)
    room = buffers.empty(N)
    time.sleep(0.3)
    del room  # freed when all others may have been long ago
    gc.collect()
    end = time.monotonic() + 10
    while (buffers.waiting_bytes or buffers._thread) and time.monotonic() < end:
        time.sleep(0.02)
    assert not buffers.waiting_bytes
    assert buffers._thread is None
    assert buffers.empty(N).size == N  # begins anew


def test_release__frees_what_waits_and_leaves_what_is_used():
    buffers = Buffers()
    used, freed = buffers.empty(N), buffers.empty(N)
    used[:] = 3
    del freed
    gc.collect()
    assert buffers.waiting_bytes
    buffers.release()
    assert not buffers.waiting_bytes
    assert (used == 3).all()


def test_take__by_many_threads_gives_each_its_own():
    buffers, problems = Buffers(), []

    def work(number):
        for _ in range(50):
            room = buffers.empty(N)
            room[::4096] = number
            time.sleep(0)
            if (room[::4096] != number).any():
                problems.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems
    assert buffers.waiting_bytes <= 2 * 4 * 4 * N  # one that is used, and the one before
