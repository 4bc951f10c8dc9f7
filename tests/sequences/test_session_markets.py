"""Markets of items: how often events name them, part by part, and what becomes of it."""

import os
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from daskw2v import Events, Params, Resources, Sessions, Vectors, retrain, train
from daskw2v.errors import InputError, ParameterError
from daskw2v.retraining.gates import Gates
from daskw2v.retraining.outcome import Outcome
from daskw2v.sequences.parts import read_markets
from daskw2v.stages import Store

pd = pytest.importorskip("pandas")

DAY, GAP = 1000, 30
LOOSE = Gates(min_stability=None, min_kept=None)  # of so little text
SESSIONS = Sessions(gap=GAP, per="file", market="city")
PARAMS = Params(vector_size=8, window=20, shrink_windows=False, sample=0, min_count=1, epochs=1, market_negative=3)


def frame(day, n=300):
    """Events of a day: an item is in one of three cities, mostly its own; sessions go on at midnight."""
    random = np.random.default_rng(day)
    times = np.append(random.integers(0, DAY, n - 40), random.integers(DAY - 20, DAY, 40))
    start = np.where(np.arange(n) % 50 == 0, random.integers(0, 20, n), times)
    items = random.integers(0, 60, n)
    cities = np.where(random.random(n) < 0.8, items % 3, random.integers(0, 3, n))
    names = np.array(["Rom", "Ulm", "Åre"])[cities]
    return pd.DataFrame({"user": random.integers(0, 9, n), "item": items, "time": day * DAY + start, "city": names})


@pytest.fixture
def days(tmp_path):
    """Files of three days."""
    for day in range(3):
        frame(day).to_parquet(tmp_path / f"{day}.parquet")
    return [str(tmp_path / f"{day}.parquet") for day in range(3)]


def cut(inputs, work, client, sessions=SESSIONS, block_size="64 MiB"):
    """Return the sessions' files, and how often each item is in each market there."""
    store = Store(str(work))
    actual = Events(inputs, sessions).write(
        store, PARAMS, Resources(block_size=block_size), lambda: client, lambda _: None
    )
    counts = Counter()
    for table in read_markets(store, actual):
        for row in table.to_pylist():
            counts[row["word"], row["market"]] += row["count"]
    return actual, counts


def events_of_sessions(files, least=2):
    """Count items in cities, event by event, in sessions of so many events or more."""
    events = pd.concat([pd.read_parquet(file) for file in files]).sort_values(["user", "time", "item", "city"])
    sessions, before = [], (None, 0)
    for user, item, time, city in events[["user", "item", "time", "city"]].itertuples(index=False):
        if user != before[0] or time - before[1] > GAP:
            sessions.append([])
        sessions[-1].append((str(item), city))
        before = user, time
    return Counter(pair for session in sessions if len(session) >= least for pair in session)


@pytest.mark.slow
@pytest.mark.sampled(1)
@pytest.mark.parametrize("block_size", ["64 MiB", "3 KB"])
def test_counts__are_those_of_all_events_in_sessions(days, client, tmp_path, block_size):
    _, counts = cut(days, tmp_path / "work", client, block_size=block_size)
    assert counts == events_of_sessions(days)
    assert len({market for _, market in counts}) == 3


@pytest.mark.slow
def test_counts__are_the_same_night_by_night_and_all_at_once(days, client, tmp_path):
    for n in (1, 2, 3):
        nights = cut(days[:n], tmp_path / "nights", client, block_size="3 KB")
    together = cut(days, tmp_path / "whole", client, Sessions(gap=GAP, market="city"))
    once, files = cut(days, tmp_path / "once", client)
    assert nights[1] == files == together[1]
    assert [file.name for file in nights[0]] != [file.name for file in once]


def test_counts__take_weights_but_no_goals(client, tmp_path):
    events = pd.DataFrame(
        {
            "user": [1] * 4,
            "item": ["a", "b", "c", "d"],
            "time": range(4),
            "city": ["Rom", "Rom", None, "Ulm"],
            "times": [1.0, 3.0, 1.0, 0.0],
            "booked": [True, False, False, False],
        }
    )
    events.to_parquet(tmp_path / "events.parquet")
    sessions = Sessions(market="city", event_weight="times", goal="booked")
    _, counts = cut(str(tmp_path / "events.parquet"), tmp_path / "work", client, sessions)
    assert counts == {("a", "Rom"): 1, ("b", "Rom"): 3, ("c", ""): 1}


def test_markets__may_be_numbers(client, tmp_path):
    pd.DataFrame({"user": [1, 1], "item": [5, 6], "time": [0, 1], "zip": [10, 20]}).to_csv(tmp_path / "a.csv")
    _, counts = cut(str(tmp_path / "a.csv"), tmp_path / "work", client, Sessions(market="zip"))
    assert counts == {("5", "10"): 1, ("6", "20"): 1}


def test_wrong_markets__are_refused(days, client, tmp_path):
    frame(0).assign(city=1.5).to_parquet(tmp_path / "floats.parquet")
    with pytest.raises(InputError, match=r"Markets of .*floats\.parquet are of type double, and 1\.5"):
        cut(str(tmp_path / "floats.parquet"), tmp_path / "work", client)
    with pytest.raises(InputError, match="no single column 'town'"):
        cut(days, tmp_path / "work", client, SESSIONS.replace(market="town"))
    asked = {"work": tmp_path / "work", "client": client, "listener": None}
    for sessions, params, message in (
        (SESSIONS, {"market_negative": 0}, "markets of the events change nothing for market_negative=0"),
        (SESSIONS, {"markets": "a.csv"}, "markets='a.csv', and the events have a column"),
        (Sessions(gap=GAP), {}, "market_negative=3 has no markets to draw from"),
    ):
        with pytest.raises(ParameterError, match=message):
            train(Events(days, sessions), params=PARAMS.replace(**params), **asked)


@pytest.mark.slow
def test_train__draws_from_the_markets_of_the_events(days, client, tmp_path):
    """The same vectors as with a table of these markets."""
    _, counts = cut(days, tmp_path / "counted", client)
    rows = [(*pair, n) for pair, n in counts.items()]
    pd.DataFrame(rows, columns=["word", "market", "count"]).to_csv(tmp_path / "markets.csv", index=False)

    def rows_of(name, sessions, **changes):
        asked = {"work": tmp_path / name, "resources": Resources(threads=1), "client": client, "listener": None}
        return train(Events(days, sessions), params=PARAMS.replace(**changes), **asked).vectors[:]

    without = Sessions(gap=GAP, per="file")
    own = rows_of("own", SESSIONS)
    np.testing.assert_array_equal(own, rows_of("by a table", without, markets=str(tmp_path / "markets.csv")))
    assert not np.array_equal(own, rows_of("of all words", without, market_negative=0))


@pytest.mark.slow
def test_nights__go_on_though_counts_of_markets_grow(days, client, tmp_path):
    versions = []
    for n in (2, 3):
        asked = {"work": tmp_path / "work", "resources": Resources(threads=1), "client": client, "listener": None}
        summary = retrain(Events(days[:n], SESSIONS), params=PARAMS, gates=LOOSE, **asked)
        assert summary.outcome is Outcome.PUBLISHED
        versions.append(Vectors.open(str(tmp_path / "work")))
        for day in days[:n]:  # which nobody reads again
            before = os.stat(day)
            Path(day).write_bytes(bytes(before.st_size))
            os.utime(day, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert versions[1].metadata["params"]["base_model"] == Path(versions[0].url).name, "not from scratch"


def test_damaged_counts__are_made_again(days, client, tmp_path):
    asked = {"work": tmp_path / "work", "client": client, "listener": None}
    first = train(Events(days, SESSIONS), params=PARAMS, resources=Resources(threads=1), **asked)
    damaged = sorted((tmp_path / "work").glob("sessions/*/ended-markets.parquet"))[0]
    content = damaged.read_bytes()
    damaged.write_bytes(content[:40] + bytes(b ^ 1 for b in content[40:60]) + content[60:])
    again = train(Events(days, SESSIONS), params=PARAMS.replace(seed=2), resources=Resources(threads=1), **asked)
    assert damaged.read_bytes() == content
    assert len(again) == len(first)
