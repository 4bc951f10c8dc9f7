import gzip
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
from daskw2v.corpus.formats import csv
from daskw2v.errors import InputError, ParameterError
from daskw2v.progress import silent
from daskw2v.sequences import parts
from daskw2v.sequences.cutting import Cut, cut_sessions
from daskw2v.sequences.settings import Sessions
from daskw2v.sequences.sources import Events
from daskw2v.store.storage import Store

pd = pytest.importorskip("pandas")

BEGAN = datetime(2024, 2, 28, 23, tzinfo=UTC)
EVENTS = st.lists(st.tuples(st.integers(0, 3), st.integers(-2, 3), st.integers(0, 30)), max_size=40)


def plain(events, gap, least, drop_repeats):
    """Cut sessions event by event; events are (user, item, time)."""
    actual = []
    for _, own in groupby(sorted(events, key=lambda e: (e[0], e[2], e[1])), key=lambda e: e[0]):
        last = None
        for _, item, time in own:
            if last is None or (gap is not None and time - last > gap):
                actual.append([])
            if not (drop_repeats and actual[-1][-1:] == [item]):
                actual[-1].append(item)
            last = time
    return [session for session in actual if len(session) >= least]


@given(EVENTS, st.none() | st.integers(1, 9), st.integers(1, 3), st.booleans())
def test_sessions__are_cut_as_event_by_event(events, gap, least, drop_repeats):
    frame = pd.DataFrame(events, columns=["user", "item", "time"], dtype="int64")
    items, edges, _ = cut_sessions(frame, Sessions(least=least, drop_repeats=drop_repeats), Cut(gap))
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
        gather = parts.gather

        def killing(client, futures, task):
            wait(futures, return_when="FIRST_COMPLETED")
            killed.append(other.run(os.getpid).popitem()[1])
            os.kill(killed[0], signal.SIGKILL)
            return gather(client, futures, task)

        monkeypatch.setattr(parts, "gather", killing)
        actual = lists_in(written(path, tmp_path / "b", other))
    assert killed
    assert actual == expected


def test_sessions__are_written_once(events, client, tmp_path, monkeypatch):
    path = write(tmp_path / "a.parquet", events)
    first = written(path, tmp_path, client)
    monkeypatch.setattr(parts, "read_events", None)
    assert written(path, tmp_path, client) == first


HEADER = "who,what,when\n"


@pytest.mark.parametrize(
    ("content", "options", "error", "message"),
    [
        (HEADER + "1,2,3\n1,3,4\n", {"gap": "10 min"}, ParameterError, "gap='10 min' is not a number"),
        (HEADER + "1,2,2024-01-01\n", {"gap": "soon"}, ParameterError, "gap='soon' is not a duration"),
        (HEADER + "1,2,3\n", {"gap": "0"}, ParameterError, "not above 0"),
        (HEADER + "1,2,3\n1,3,\n", {}, InputError, "1 events lack user, item or time"),
        (HEADER + "1,2,3\n1,,5\n", {}, InputError, r"a\.csv: 1 events lack user, item or time"),
        (HEADER + "1,2,3\n2,2,3\n", {}, InputError, "no session of 2 items"),
        (HEADER + "1,2,yesterday\n", {"gap": "1h"}, InputError, "neither a number nor ISO 8601 .*yesterday"),
        ("who,what\n1,2\n", {}, InputError, "no single column 'when'.*: who, what"),
        ("", {}, InputError, "no single column 'who'.*: none"),
        ("1,2,3\n1,2,4\n", {}, InputError, r"no single column 'who'.*: 1, 2, 3\. The first row of CSV and TSV names"),
        (HEADER + "1,2,3\n" + HEADER + "1,2,3\n", {}, InputError, "has a row that is a header: who, what, when"),
        (HEADER + "1,2,3\n1,2\n", {}, InputError, "row 3 .*: 2 fields, where the header has 3"),
        (HEADER + "1,2,2024-01-01\n", {"gap": "1800"}, ParameterError, "gap='1800' has no unit.* '1800 s'"),
        (HEADER + "1,2,2024-01-01\n", {"gap": None, "half_life": 3600}, ParameterError, "half_life='3600' has no unit"),
        (HEADER + "1,2,5\n1,2,2024-01-01\n", {}, InputError, "the time '2024-01-01', where other times are numbers"),
        (HEADER + "1,2,now\n", {}, InputError, "the time 'now'"),
        (HEADER + "1,2,nat\n", {}, InputError, "the time 'nat'"),
    ],
)
def test_sessions__of_bad_input_are_refused(client, tmp_path, content, options, error, message):
    (tmp_path / "a.csv").write_text(content)
    with pytest.raises(error, match=message):
        written(tmp_path / "a.csv", tmp_path, client, **options)


def cut(client, tmp_path, lists_in, *paths, gap=None, **options):
    return sorted(lists_in(written([*paths], tmp_path / "work", client, gap, **options)))


@pytest.mark.parametrize("block_size", [500, 20_000])
def test_events__are_read_by_the_header_of_each_file(client, tmp_path, lists_in, monkeypatch, block_size):
    """Ids are as they are written, columns that are not named are not read, whatever is cut where."""
    monkeypatch.setattr(csv, "ROW", 90)
    rows = "".join(f"1,7,{n},{n}\n" for n in range(4))
    (tmp_path / "a.csv").write_text("who,what,when,price\n" + rows + '01,007,1,x\n01,NA,2,\n01,"a\nb",3,nan\n')
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress(b"what, when ,price,who\nnull,9,,1\nnan,10,,1\n"))
    (tmp_path / "c.tsv").write_text("when\twho\twhat\n11\t1\t3.0\n")
    (tmp_path / "d").write_text("who,what,when\n1,\u00e9,12\n")
    pq.write_table(pa.table({"when": [13.0], "what": [8], "who": [1.0]}), tmp_path / "e.parquet")
    paths = [tmp_path / name for name in ("a.csv", "b.csv.gz", "c.tsv", "d", "e.parquet")]
    actual = cut(client, tmp_path, lists_in, *paths, block_size=block_size)
    assert actual == [["007", "NA", "a\nb"], ["7"] * 4 + ["null", "nan", "3.0", "\u00e9", "8"]]


def test_events__of_integers_are_the_same_in_csv_and_in_parquet(client, tmp_path):
    rows, files = [(1, 10, 5), (1, 9, 5), (2, 3, 1), (2, 4, 0)], []
    for suffix in ("csv", "parquet"):
        write(tmp_path / f"a.{suffix}", rows)
        (actual,) = written(tmp_path / f"a.{suffix}", tmp_path / suffix, client)
        files.append(pq.read_table(actual))
    assert files[0].equals(files[1])


DAY = datetime(2024, 3, 1, tzinfo=UTC)
TIMES = {
    "date32": pa.array([DAY.date(), DAY.date() + timedelta(1)], pa.date32()),
    "date64": pa.array([DAY.date(), DAY.date() + timedelta(1)], pa.date64()),
    "s": pa.array([DAY, DAY + timedelta(1)], pa.timestamp("s")),
    "us and zone": pa.array([DAY, DAY + timedelta(1)], pa.timestamp("us", "Asia/Tokyo")),
    "ns": pa.array([DAY, DAY + timedelta(1)], pa.timestamp("ns")),
    "text": pa.array(["2024-03-01", "2024-03-02T09:00+09:00"]),
}


def test_times__may_have_any_type(client, tmp_path, lists_in):
    """Times of all types are on one clock: those of one day are a session."""
    for n, (name, times) in enumerate(TIMES.items()):
        table = pa.table({"who": [1, 1], "what": [f"{name} {day}" for day in (0, 1)], "when": times})
        pq.write_table(table, tmp_path / f"{n}.parquet")
    (tmp_path / "z.csv").write_text("who,what,when\n1,csv 0,2024-02-29 23:00-01:00\n1,csv 1,2024-03-02\n")
    expected = [sorted(f"{name} {day}" for name in (*TIMES, "csv")) for day in (0, 1)]
    assert cut(client, tmp_path, lists_in, *sorted(tmp_path.glob("*.*")), gap="23h") == expected


@pytest.mark.parametrize(
    ("times", "message"),
    [
        (pa.array([1.0, float("inf")]), "has the time inf"),
        (pa.array([1.0, float("nan")]), "1 events lack"),
        (pa.array([1, 2**64 - 1], pa.uint64()), "a time out of range"),
        (pa.array([0, 1 << 40], pa.timestamp("s")), "a time out of range"),
        (pa.array([1, 2], pa.time32("s")), "Times of .* are of type time32"),
        (pa.array([True, False]), "Times of .* are of type bool"),
        (pa.array([DAY, DAY]), r"Times of .*z\.csv are numbers, those of .*a\.parquet are not"),
    ],
)
def test_times__that_are_none_are_refused(client, tmp_path, times, message):
    (tmp_path / "z.csv").write_text("who,what,when\n1,2,3\n")
    pq.write_table(pa.table({"who": [1, 1], "what": [1, 2], "when": times}), tmp_path / "a.parquet")
    with pytest.raises(InputError, match=message):
        written([*tmp_path.glob("?.*")] if "csv" in message else tmp_path / "a.parquet", tmp_path, client, gap=None)


def test_weights_and_goals__are_numbers_or_truth_values_in_csv(client, tmp_path, lists_in):
    (tmp_path / "a.csv").write_text("who,what,when,n,won\n1,a,1,2,TRUE\n1,b,2, 1.0,false\n1,c,3,0,0\n")
    (tmp_path / "b.csv").write_text("won,n,who,what,when\n1,true,1,d,4\n")
    paths = [tmp_path / "a.csv", tmp_path / "b.csv"]
    assert cut(client, tmp_path, lists_in, *paths, event_weight="n", goal="won") == [["a", "a", "b", "d"]]
    for value, message in (("nan", "lack"), ("-1", "'n' of an event .* is -1"), ("inf", "is inf"), ("x", "holds what")):
        (tmp_path / "c.csv").write_text(f"who,what,when,n\n1,a,1,{value}\n")
        with pytest.raises(InputError, match=message):
            written(tmp_path / "c.csv", tmp_path, client, event_weight="n", gap=None)


def test_sessions__of_items_without_a_name_are_refused(client, tmp_path):
    pq.write_table(pa.table({"who": [1, 1], "what": ["a", ""], "when": [1, 2]}), tmp_path / "a.parquet")
    with pytest.raises(InputError, match="1 events lack user, item or time"):
        written(tmp_path / "a.parquet", tmp_path, client)


def test_sessions__have_an_item_at_least():
    with pytest.raises(ParameterError, match="least=0"):
        Sessions(least=0)
