"""What workers of one host share goes by no wire, ends with those who hold it, and is never the only way."""

import gc
import os
import pickle
import resource
import signal
import time
from contextlib import suppress
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest
from distributed import Client, LocalCluster, wait
from distributed.protocol import deserialize, serialize
from distributed.spill import SpillBuffer

from daskw2v.cluster import shared_memory
from daskw2v.cluster.shared_memory import SharedArray, allocate_shared, by_fields, share, shared_bytes

pytestmark = pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="this system has no memory without a name")
N = 50_000


@by_fields
class Pair(NamedTuple):
    name: str
    rows: object


def make(seed=0):
    return share(np.random.default_rng(seed).random((N // 10, 10), np.float32))


def make_pair(rows):
    return {1: Pair("one", rows), 2: Pair("two", rows[:5].copy())}


def look(rows):
    """Take an array of another worker: what is it, and is it right?"""
    return isinstance(rows, SharedArray) and rows.region is not None, rows.tobytes() == make().tobytes()


def look_at_pair(pairs):
    return look(pairs[1].rows), pairs[2].rows.shape, [pairs[k].name for k in pairs]


def files():
    return sum(leads_to(f"/proc/self/fd/{name}").startswith("/memfd:daskw2v") for name in os.listdir("/proc/self/fd"))


def leads_to(link):
    with suppress(FileNotFoundError):  # another thread has closed the file meanwhile
        return os.readlink(link)
    return ""


def wired(dask_worker):
    return sum(entry["compressed"] for entry in dask_worker.transfer_outgoing_log)


@pytest.fixture(scope="module")
def pair():
    """A client of two workers that have shared something before, and said so; and their addresses."""
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        client.amm.stop()  # it deletes copies that no task waits for, while a test looks at them
        yield client, *settle(client)


def settle(client):
    addresses = sorted(client.nthreads())
    wait([client.submit(make, workers=[address], pure=False) for address in addresses])
    return addresses


@pytest.fixture
def made():
    """An array as a worker shares it, in this process."""
    rows = np.arange(N, dtype=np.float32).reshape(-1, 10)
    file, region = shared_memory._write(rows.data.cast("B"))
    return shared_memory._map_array(file, region, rows.shape, rows.dtype)


def test_share__goes_by_its_place_from_hand_to_hand(pair):
    client, a, b = pair
    before, given = client.run(wired), client.run(shared_bytes)
    rows = client.submit(make, workers=[a], pure=False)
    assert client.submit(look, rows, workers=[b], pure=False).result() == (True, True)
    assert client.submit(look_at_pair, client.submit(make_pair, rows, workers=[b]), workers=[a]).result() == (
        (True, True),
        (5, 10),
        ["one", "two"],
    )
    after, now = client.run(wired), client.run(shared_bytes)
    assert sum(after.values()) - sum(before.values()) < 4 * N / 10
    assert {address: now[address] - given[address] for address in (a, b)} == {a: 4 * N, b: 4 * N}


def test_share__gives_clients_bytes(pair):
    client, a, _ = pair
    rows = client.submit(make, workers=[a], pure=False)
    assert type(rows.result()) is np.ndarray
    np.testing.assert_array_equal(rows.result(), make())
    np.testing.assert_array_equal(client.gather(rows, direct=True), make())


def test_share__ends_with_the_last_who_holds_it(pair):
    client, a, b = pair
    rows = client.submit(make, workers=[a], pure=False)
    wait(client.submit(look, rows, workers=[b], pure=False))
    assert all(n > 1 for n in client.run(files).values())
    del rows
    wait_for_files(client, {a: 1, b: 1})


def wait_for_files(client, expected):
    """Wait until workers have no file more than these; one is that of the handshake."""
    deadline = time.monotonic() + 10
    while (n_files := client.run(files, workers=[*expected])) != expected and time.monotonic() < deadline:
        time.sleep(0.05)
    assert n_files == expected


def test_share__survives_that_dask_spills_it(pair):
    client, a, b = pair
    rows = client.submit(make, workers=[a], pure=False)
    wait(rows)
    assert client.run(lambda dask_worker: dask_worker.data.evict(), workers=[a])[a] == 4 * N
    wait_for_files(client, {a: 1})
    assert client.submit(look, rows, workers=[b], pure=False).result() == (False, True)


def test_share__of_spilled_arrays_keeps_the_bytes(made, tmp_path):
    spilled, expected = SpillBuffer(str(tmp_path), target=1), made.tobytes()
    spilled["rows"] = made
    del made
    gc.collect()
    assert "rows" in spilled.disk
    assert spilled["rows"].tobytes() == expected


def four_files(_):
    return 4, 4


@pytest.mark.slow
def test_share__is_never_the_only_way():
    """One that has said nothing yet gets bytes, as does one that cannot open what it should; and a giver may die."""
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        a, b = sorted(client.nthreads())

        def give():
            rows = client.submit(make, workers=[a], allow_other_workers=True, pure=False)
            return rows, client.submit(look, rows, workers=[b], pure=False).result(timeout=30)

        assert give()[1] == (False, True)
        settle(client)
        kept, is_same = give()
        assert is_same == (True, True)
        client.run(setattr, resource, "getrlimit", four_files, workers=[b])
        assert [give()[1], give()[1]] == [(False, True)] * 2
        assert client.run(shared_bytes)[a] == 2 * 4 * N, "once, and once in vain"
        os.kill(client.run(os.getpid)[a], signal.SIGKILL)
        _, right = client.submit(look, kept, workers=[b], pure=False).result(timeout=90)  # Dask waits 30 for who died
        assert right, "as it was taken, or made again where Dask had let go of that"


def test_share__cannot_be_written(made):
    with pytest.raises(ValueError, match="read-only"):
        made[0] = 1
    with pytest.raises(OSError, match="not permitted"):
        os.write(made.region.file, b"x")


def test_share__what_is_made_of_it_has_no_place(made):
    for other in (made[1:], made + 1, made.copy(), np.zeros_like(made)):
        assert getattr(other, "region", None) is None
        context = {"recipient": {shared_memory._KEY: made.region}}
        header, frames = serialize(other, context=context)
        assert len(frames) == 1
        np.testing.assert_array_equal(deserialize(header, frames), other)
    assert type(pickle.loads(pickle.dumps(made))) is np.ndarray


def test_share__takes_no_more_files_than_there_should_be(made, monkeypatch):
    before = files()
    monkeypatch.setattr(resource, "getrlimit", four_files)
    with pytest.raises(OSError, match="Too many open files"):
        shared_memory._open(made.region)
    assert files() == before


def test_share__of_a_shared_array_is_itself(made):
    assert share(made) is made


def test_share__refuses_other_memory_in_the_same_place(made):
    wrong = made.region._replace(mark=bytes(16))
    ends = os.pipe()
    for region in (wrong, made.region._replace(file=ends[0]), made.region._replace(file=ends[1] + 100)):
        with pytest.raises(FileNotFoundError):
            shared_memory._open(region)
    for end in ends:
        os.close(end)
    _, frames = serialize(made, context={"recipient": {shared_memory._KEY: wrong}})
    assert len(frames) == 1, "of another host, where this process and file happen to exist too"


@pytest.fixture
def in_a_worker(monkeypatch):
    """This process is a worker, and has said that it can open shared memory."""
    rpc = SimpleNamespace(connection_args={}, collect=lambda: None)
    worker = SimpleNamespace(rpc=rpc, loop=SimpleNamespace(add_callback=lambda callback: callback()))
    monkeypatch.setattr(shared_memory, "get_worker", lambda: worker)
    share(np.zeros(N, np.float32))


def test_share__changes_nothing_outside_of_workers():
    rows = np.zeros((N, 2), np.float32)
    assert share(rows) is rows


def test_share__changes_nothing_where_it_is_of_no_use(in_a_worker, monkeypatch):
    rows = np.zeros((N, 2), np.float32)
    assert share(rows[:9]).base is rows, "too small"
    assert type(share(rows[:, :1])) is np.ndarray, "not in one piece"
    assert type(share(rows)) is SharedArray
    monkeypatch.delattr(os, "memfd_create")
    assert share(rows) is rows, "another system"


LARGE = 600, 1000  # 2.4 MB: memory that is used again


def received(array, made):
    """Return an array as another worker of this host has it."""
    header, frames = serialize(array, context={"recipient": {shared_memory._KEY: made.region}})
    assert not frames
    return deserialize(header, frames)


def test_allocate_shared__is_memory_that_others_read(in_a_worker, made):
    rows, before = allocate_shared(LARGE), files()
    rows[:] = 7
    assert share(rows) is rows
    assert (received(share(rows), made) == 7).all()
    assert files() == before, "nothing was copied"
    with pytest.raises(ValueError, match="read-only"):
        rows[0] = 1
    assert type(allocate_shared((9, 10))) is np.ndarray, "too small"


def test_allocate_shared__is_of_this_process_outside_of_workers():
    assert type(allocate_shared(LARGE)) is np.ndarray


@pytest.mark.parametrize("make", [lambda: allocate_shared(LARGE), lambda: share(np.empty(LARGE, np.float32))])
def test_shared_memory__is_used_again_when_the_last_receiver_is_done(in_a_worker, made, make):
    rows = make()
    other_rows = received(share(rows), made)
    region, view, expected = rows.region, other_rows[3:], rows[3:].copy()
    del rows, other_rows
    gc.collect()
    other = allocate_shared(LARGE)
    other[:] = 1
    assert other.region.file != region.file
    np.testing.assert_array_equal(view, expected)
    del view
    gc.collect()
    again = allocate_shared(LARGE)
    assert (again.region.file, again.region.size) == (region.file, region.size)
    with pytest.raises(FileNotFoundError, match="is gone"):
        shared_memory._open(region)  # a receiver that comes late
    os.close(shared_memory._open(again.region))


def test_share__writes_memory_when_it_is_first_given(monkeypatch, in_a_worker, made):
    mine, before = share(np.arange(N, dtype=np.float32)), files()
    context = {"recipient": {shared_memory._KEY: made.region}}
    assert (mine.region, len(serialize(mine)[1]), files()) == (None, 1, before), "nobody of this host asked"
    given = [serialize(mine, context=context) for _ in range(2)]
    assert [len(frames) for _, frames in given] == [0, 0]
    assert files() == before + 1
    np.testing.assert_array_equal(deserialize(*given[0]), mine)
    with pytest.raises(ValueError, match="read-only"):
        mine[0] = 1
    monkeypatch.setattr(resource, "getrlimit", four_files)
    other = share(np.ones(N, np.float32))
    assert len(serialize(other, context=context)[1]) == 1, "no more files: bytes"
    del mine
    gc.collect()
    assert files() == before
