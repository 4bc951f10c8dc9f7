"""Nights on events: each reads the new file, and the vectors of items go on as those of words do."""

import os

import numpy as np
import pytest
from nights_of_text import LOOSE

from daskw2v import Events, Params, Resources, Sessions, Vectors, Versions, retrain
from daskw2v.retraining.outcome import Outcome

pd = pytest.importorskip("pandas")

DAY, KINDS = 10_000, 5
PARAMS = Params(vector_size=8, window=20, shrink_windows=False, sample=0, min_count=2, epochs=2, rounds_per_epoch=2)
SESSIONS = Sessions(gap=60, per="file")


def write_day(folder, day, n=4000, items=60):
    """Write a file of events: in a session a user looks at items of one kind, and at one of that day."""
    random, of_kind = np.random.default_rng(day), items // KINDS
    session, place = np.divmod(np.arange(n), 10)
    kinds = random.integers(0, KINDS, n)[session]
    item = np.where(place == 9, 1000 + day, kinds * of_kind + random.integers(0, of_kind, n))
    time = day * DAY + (DAY * session // (session.max() + 1)) + place
    pd.DataFrame({"user": session % 7, "item": item, "time": time}).to_parquet(folder / f"{day}.parquet")


@pytest.fixture
def night(tmp_path, client):
    """A night's run on the files of events that are there."""
    (tmp_path / "events").mkdir()

    def run(*days):
        for day in days:
            write_day(tmp_path / "events", day)
        report = []
        events = Events(str(tmp_path / "events" / "*.parquet"), SESSIONS)
        summary = retrain(
            events,
            work=tmp_path / "work",
            params=PARAMS,
            resources=Resources(threads=1),
            gates=LOOSE,
            client=client,
            listener=report.append,
        )
        return summary, [p.message for p in report if p.stage == "sessions" and p.message.startswith("read ")]

    return run


def spoil(file):
    """Put something else into a file that nobody should read again."""
    before = os.stat(file)
    file.write_bytes(bytes(before.st_size))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_nights__read_the_new_file_alone(night, tmp_path):
    served = []
    for day in range(2):
        summary, (report,) = night(day)
        assert summary.outcome is Outcome.PUBLISHED
        assert report.endswith(f" in 1 of {day + 1} part{'s' if day else ''}")
        assert (summary.figures["files_new"], summary.figures["files_gone"]) == (2, day), "and what was open"
        spoil(tmp_path / "events" / f"{day}.parquet")
        served.append(Vectors.open(str(tmp_path / "work")))
    ids, later = (dict(zip(v.vocabulary.words, v.stable_ids.tolist(), strict=True)) for v in served)
    assert ids == {word: later[word] for word in ids}
    assert later["1001"] == len(ids)
    assert summary.alignment.after >= summary.alignment.before
    summary, (report,) = night()
    assert (summary.outcome, report.split(" of ")[0]) == (Outcome.NOTHING_NEW, "read 0 B")


@pytest.mark.slow
def test_nights__delete_sessions_that_no_kept_version_was_made_of(night, tmp_path):
    def parts():
        return {path.name for path in (tmp_path / "work" / "sessions").iterdir()}

    night(0, 1, 2)
    before = parts()
    (tmp_path / "events" / "0.parquet").unlink()  # the next part begins without what was handed on
    night(3)
    assert len(before & parts()) == 3, "they stay for a rollback"
    night(4)
    assert len(before & parts()) == 1
    assert len(parts()) == 4
    assert Versions.open(str(tmp_path / "work")).all()[-1].served
    summary, (report,) = night(5)
    assert summary.outcome is Outcome.PUBLISHED
    assert report.endswith(" in 1 of 5 parts")
