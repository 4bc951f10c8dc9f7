import os
import signal
from datetime import UTC, datetime, timedelta
from itertools import groupby, pairwise

import dask
import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from distributed import Client, LocalCluster, wait
from hypothesis import given
from hypothesis import strategies as st

from daskw2v.config.resources import Resources
from daskw2v.errors import InputError, ParameterError
from daskw2v.progress import silent
from daskw2v.sequences import writing
from daskw2v.sequences.cutting import Cut, sessions_of
from daskw2v.sequences.sessions import Sessions
from daskw2v.sequences.sources import Events
from daskw2v.store.storage import Store

pd = pytest.importorskip("pandas")

BEGAN = datetime(2024, 2, 28, 23, tzinfo=UTC)
EVENTS = st.lists(st.tuples(st.integers(0, 3), st.integers(-2, 3), st.integers(0, 30)), max_size=40)


def plain(events, gap, least, drop_repeats):
    """Cut sessions event by event; events are (user, item, time)."""
    found = []
    for _, own in groupby(sorted(events, key=lambda e: (e[0], e[2], e[1])), key=lambda e: e[0]):
        last = None
        for _, item, time in own:
            if last is None or (gap is not None and time - last > gap):
                found.append([])
            if not (drop_repeats and found[-1][-1:] == [item]):
                found[-1].append(item)
            last = time
    return [session for session in found if len(session) >= least]


@given(EVENTS, st.none() | st.integers(1, 9), st.integers(1, 3), st.booleans())
def test_sessions__are_cut_as_event_by_event(events, gap, least, drop_repeats):
    frame = pd.DataFrame(events, columns=["user", "item", "time"], dtype="int64")
    items, edges, _ = sessions_of(frame, Sessions(least=least, drop_repeats=drop_repeats), Cut(gap))
    cut = [items.to_pylist()[a:b] for a, b in pairwise(edges)]
    assert cut == plain(events, gap, least, drop_repeats)


@pytest.fixture(scope="module")
def events():
    random = np.random.default_rng(4)
    users, items, times = (random.integers(0, n, 3000).tolist() for n in (40, 300, 100_000))
    return list(zip(users, items, times, strict=True))


def write(path, events, *, strings=False, clock=False):
    users, items, times = (list(values) for values in zip(*events, strict=True))
    columns = {
        "who": [f"u{u}" for u in users] if strings else users,
        "what": [f"i{i:03}" for i in items] if strings else items,
        "when": [BEGAN + timedelta(seconds=t) for t in times] if clock else times,
        "other": [None] * len(users),
    }
    table = pa.table(columns)
    pq.write_table(table, path, row_group_size=500) if path.suffix == ".parquet" else pa_csv.write_csv(table, path)
    return path


def written(inputs, work, client, gap="600", block_size=20_000, **options):
    events = Events(inputs, Sessions(user="who", item="what", time="when", gap=gap, **options))
    resources = Resources(block_size=block_size)
    return [file.url for file in events.write(Store(str(work)), Events.params, resources, lambda: client, silent)]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("suffix", ["parquet", "csv"])
@pytest.mark.parametrize(("strings", "clock"), [(False, False), (True, True)])
def test_sessions__are_those_of_all_files(events, client, tmp_path, lists_in, caplog, suffix, strings, clock):
    halves = [events[:1000], events[1000:]]
    paths = [write(tmp_path / f"{i}.{suffix}", half, strings=strings, clock=clock) for i, half in enumerate(halves)]
    files = written(paths, tmp_path, client, gap="10 min" if clock else "600")
    assert caplog.messages == []
    assert len(files) > 1
    expected = plain(events, 600, 2, False)
    expected = [[f"i{i:03}" for i in session] for session in expected] if strings else expected
    assert sorted(lists_in(files)) == sorted(expected)


@pytest.mark.slow
def test_sessions__are_the_same_when_a_worker_is_killed(events, client, tmp_path, lists_in, monkeypatch):
    path, killed = write(tmp_path / "a.parquet", events), []
    expected = lists_in(written(path, tmp_path / "a", client))
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "3s"}),  # to whom is killed
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as other,
    ):
        gather = writing.gather

        def killing(client, futures, task):
            wait(futures, return_when="FIRST_COMPLETED")
            killed.append(other.run(os.getpid).popitem()[1])
            os.kill(killed[0], signal.SIGKILL)
            return gather(client, futures, task)

        monkeypatch.setattr(writing, "gather", killing)
        found = lists_in(written(path, tmp_path / "b", other))
    assert killed
    assert found == expected


def test_sessions__are_written_once(events, client, tmp_path, monkeypatch):
    path = write(tmp_path / "a.parquet", events)
    first = written(path, tmp_path, client)
    monkeypatch.setattr(writing, "read_events", None)
    assert written(path, tmp_path, client) == first


HEADER = "who,what,when\n"


@pytest.mark.parametrize(
    ("content", "options", "error", "message"),
    [
        (HEADER + "1,2,3\n1,3,4\n", {"gap": "10 min"}, ParameterError, "gap='10 min' is not a number"),
        (HEADER + "1,2,2024-01-01\n", {"gap": "soon"}, ParameterError, "gap='soon' is not a duration"),
        (HEADER + "1,2,3\n", {"gap": "0"}, ParameterError, "not above 0"),
        (HEADER + "1,2,3\n1,3,\n", {}, InputError, "1 events lack user, item or time"),
        (HEADER + "1,2,3\n1,,5\n", {}, InputError, "'what', are of type float64"),
        (HEADER + "1,2,3\n2,2,3\n", {}, InputError, "no session of 2 items"),
        (HEADER + "1,2,yesterday\n", {"gap": "1h"}, InputError, "cannot be read as events .*yesterday"),
        ("who,what\n1,2\n", {}, InputError, "no column 'when'.*: who, what"),
        ("", {}, InputError, "cannot be read as events"),
    ],
)
def test_sessions__of_bad_input_are_refused(client, tmp_path, content, options, error, message):
    (tmp_path / "a.csv").write_text(content)
    with pytest.raises(error, match=message):
        written(tmp_path / "a.csv", tmp_path, client, **options)


def test_sessions__of_files_of_several_kinds_are_refused(events, client, tmp_path):
    paths = [write(tmp_path / name, events) for name in ("a.parquet", "a.csv")]
    with pytest.raises(InputError, match="several formats"):
        written(paths, tmp_path, client)


def test_sessions__of_items_without_a_name_are_refused(client, tmp_path):
    pq.write_table(pa.table({"who": [1, 1], "what": ["a", ""], "when": [1, 2]}), tmp_path / "a.parquet")
    with pytest.raises(InputError, match="1 events lack user, item or time"):
        written(tmp_path / "a.parquet", tmp_path, client)


def test_sessions__have_an_item_at_least():
    with pytest.raises(ParameterError, match="least=0"):
        Sessions(least=0)
