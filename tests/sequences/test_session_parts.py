"""Sessions of one part of the events after the other: what is read, what is handed on, and what comes of it."""

import os
import re
from itertools import pairwise

import numpy as np
import pytest

from daskw2v import Events, Params, Resources, Sessions, train
from daskw2v.errors import InputError
from daskw2v.stages import Store

pd = pytest.importorskip("pandas")

DAY, GAP = 1000, 30
SESSIONS = Sessions(gap=GAP, per="file", least=1)


def frame(day, n=300, seed=0):
    """Events of a day; some users are active around its end, and go on in the next one."""
    random = np.random.default_rng([day, seed])
    times = np.append(random.integers(0, DAY, n - 40), random.integers(DAY - 20, DAY, 40))
    users = np.append(random.integers(0, 20, n - 40), random.integers(0, 4, 40))
    start = np.where(np.arange(n) % 50 == 0, random.integers(0, 20, n), times)  # at the beginning
    return pd.DataFrame({"user": users, "item": random.integers(0, 99, n), "time": day * DAY + start})


@pytest.fixture
def days(tmp_path):
    """Files of five days."""
    for day in range(5):
        frame(day).to_parquet(tmp_path / f"{day}.parquet")
    return tmp_path


def cut(inputs, work, client, sessions=SESSIONS, block_size="64 MiB"):
    """Return the files of sessions, and what was told in the end."""
    report = []
    actual = Events(inputs, sessions).write(
        Store(str(work)), Params(column="items"), Resources(block_size=block_size), lambda: client, report.append
    )
    return [file.name for file in actual], report[-1].message


def lists(work, names):
    return [row.tolist() for name in names for row in pd.read_parquet(f"{work}/{name}")["items"]]


def all_at_once(folder, files):
    """Cut the sessions of some files together, event by event."""
    events = pd.concat([pd.read_parquet(folder / file) for file in files]).sort_values(["user", "time", "item"])
    actual, before = [], (None, 0)
    for user, item, time in events[["user", "item", "time"]].itertuples(index=False):
        if user != before[0] or time - before[1] > GAP:
            actual.append([])
        actual[-1].append(item)
        before = user, time
    return actual


def names_of(n):
    return [f"{day}.parquet" for day in range(n)]


def test_parts__have_the_sessions_of_all_events_together(days, client, tmp_path):
    files = [str(days / name) for name in names_of(5)]
    actual, _ = cut(files, tmp_path / "work", client, block_size="20 KB")
    sessions = lists(tmp_path / "work", actual)
    assert sorted(sessions) == sorted(all_at_once(days, names_of(5)))
    alone = [session for name in names_of(5) for session in all_at_once(days, [name])]
    assert sorted(sessions) != sorted(alone), "none goes on over the end of a day"


def test_parts__are_the_same_one_by_one_and_all_at_once(days, client, tmp_path):
    files = [str(days / name) for name in names_of(3)]
    nights = [cut(files[:n], tmp_path / "nights", client)[0] for n in (1, 2, 3)]
    once, _ = cut(files, tmp_path / "once", client)
    assert nights[-1] == once
    assert all((tmp_path / "nights" / f).read_bytes() == (tmp_path / "once" / f).read_bytes() for f in once)
    for before, after in pairwise(nights):
        ended = [name for name in before if "/ended-" in name]
        assert after[: len(ended)] == ended
        assert not {name for name in before if "/open-" in name} & {*after}


def test_parts__are_read_once(days, client, tmp_path):
    files, sizes = [str(days / name) for name in names_of(3)], []
    for n in (1, 2, 3):
        _, message = cut(files[:n], tmp_path / "work", client)
        assert re.fullmatch(rf"read .* in 1 of {n} parts?", message)
        before = os.stat(files[n - 1])
        sizes.append(before.st_size)
        with open(files[n - 1], "wb") as file:  # whoever reads it again finds no Parquet
            file.write(bytes(before.st_size))
        os.utime(files[n - 1], ns=(before.st_atime_ns, before.st_mtime_ns))
    assert cut(files, tmp_path / "work", None)[1].startswith("read 0 B of "), "without a cluster"


def test_parts__are_made_anew_as_far_as_a_changed_file_reaches(days, client, tmp_path):
    files = [str(days / name) for name in names_of(5)]
    before, _ = cut(files, tmp_path / "work", client)
    frame(1, seed=7).to_parquet(files[1])
    after, message = cut(files, tmp_path / "work", client)
    changed = [a != b for a, b in zip(before, after, strict=True) if "/ended-" in a]
    assert changed == [False, True, True, False, False]
    assert re.fullmatch(r"read .* in 2 of 5 parts", message)
    assert sorted(lists(tmp_path / "work", after)) == sorted(all_at_once(days, names_of(5)))


def test_parts__stay_when_the_oldest_file_goes(days, client, tmp_path):
    files = [str(days / name) for name in names_of(4)]
    before, _ = cut(files, tmp_path / "work", client)
    after, message = cut(files[1:], tmp_path / "work", client)
    assert re.fullmatch(r"read .* in 1 of 3 parts", message)
    assert before[2:] == after[1:]


def test_late_events__join_a_session_that_is_open_or_begin_one(client, tmp_path):
    pd.DataFrame({"user": [1, 1, 2], "item": [10, 11, 20], "time": [0, 90, 100]}).to_parquet(tmp_path / "a.parquet")
    late = pd.DataFrame({"user": [1, 2, 2, 3], "item": [12, 21, 22, 30], "time": [5, 95, 200, 300]})
    late.to_parquet(tmp_path / "b.parquet")
    actual, message = cut([str(tmp_path / f"{name}.parquet") for name in "ab"], tmp_path / "work", client)
    # The session of user 1 at 0 had ended with the first file; that of user 2 was open
    assert sorted(lists(tmp_path / "work", actual)) == [[10], [11], [12], [21, 20], [22], [30]]
    assert message.endswith("; 2 events later than the part of their time")


def test_folders__are_parts(client, tmp_path):
    for day in (0, 1):
        folder = tmp_path / "events" / f"day={day}"
        folder.mkdir(parents=True)
        for half in (0, 1):
            frame(day).iloc[half::2].to_parquet(folder / f"{half}.parquet")
            frame(day).iloc[half::2].to_parquet(tmp_path / f"{day}{half}.parquet")
    sessions = SESSIONS.replace(per="folder")
    actual, message = cut(str(tmp_path / "events"), tmp_path / "work", client, sessions)
    assert message.endswith(" in 2 of 2 parts")
    expected = all_at_once(tmp_path, ["00.parquet", "01.parquet", "10.parquet", "11.parquet"])
    assert sorted(lists(tmp_path / "work", actual)) == sorted(expected)


def test_parts_without_a_gap__end_their_sessions(days, client, tmp_path):
    files = [str(days / name) for name in names_of(2)]
    actual, _ = cut(files, tmp_path / "work", client, Sessions(per="file"))
    sessions = lists(tmp_path / "work", actual)
    users = [pd.read_parquet(file).groupby("user")["item"].count() for file in files]
    assert sorted(map(len, sessions)) == sorted(n for counts in users for n in counts if n >= 2)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("role", ["ended", "carried"])
def test_parts__of_which_a_file_is_missing_or_cut_short_are_made_again(days, client, tmp_path, role):
    files = [str(days / name) for name in names_of(2)]
    actual, _ = cut(files, tmp_path / "work", client)
    content = {path: path.read_bytes() for path in (tmp_path / "work").glob(f"sessions/*/{role}-*.parquet")}
    first, second = content
    first.unlink()
    second.write_bytes(content[second][:-1])
    again, message = cut(files, tmp_path / "work", client)
    assert (again, message.split(" in ")[1]) == (actual, "2 of 2 parts")
    assert {path: path.read_bytes() for path in content} == content


@pytest.mark.slow
def test_train__repairs_what_was_handed_on(days, client, tmp_path):
    files, params = [str(days / name) for name in names_of(2)], Params(vector_size=8, epochs=1, min_count=1)
    work = tmp_path / "work"
    train(Events(files[:1], SESSIONS), work=work, params=params, client=client, listener=None)
    (carried,) = work.glob("sessions/*/carried-*.parquet")
    content = carried.read_bytes()
    carried.write_bytes(content[:100] + bytes(b ^ 1 for b in content[100:200]) + content[200:])
    train(Events(files, SESSIONS), work=work, params=params, client=client, listener=None)
    assert carried.read_bytes() == content


@pytest.mark.parametrize("first", [0, 1])
def test_parts__may_name_users_and_items_by_text_and_by_integers(days, client, tmp_path, first):
    frame(first).astype({"user": str, "item": str, "time": float}).to_parquet(days / f"{first}.parquet")
    actual, _ = cut([str(days / name) for name in names_of(2)], tmp_path / "work", client)
    sessions = [sorted(map(str, session)) for session in lists(tmp_path / "work", actual)]
    frame(first).to_parquet(days / f"{first}.parquet")
    assert sorted(sessions) == sorted(sorted(map(str, session)) for session in all_at_once(days, names_of(2)))


def test_parts__of_other_times_are_refused(days, client, tmp_path):
    frame(1).assign(time=pd.Timestamp("2024-01-01")).to_parquet(days / "1.parquet")
    with pytest.raises(InputError, match=r"what was carried over are numbers, those of .*1\.parquet are not"):
        cut([str(days / name) for name in names_of(2)], tmp_path / "work", client)
