"""The training loop: the rounds it plays, its checkpoints and its reports, whatever the strategy."""

import math
import weakref

import pytest

from daskw2v.errors import TrainingError
from daskw2v.store.storage import Store
from daskw2v.training.loop import checkpoint
from daskw2v.training.loop.strategy import RoundReport, TaskTotals
from daskw2v.training.rounds import train_rounds


class CountingRun:
    """A run of four rounds whose model is the number of rounds that it has played."""

    unit, trained, threads, facts = "pass", "number", 3, {"matrix": 1}

    def __init__(self, ahead=1, loss=1.0, together=1):
        self.ahead, self.loss, self.together, self.model, self.log = ahead, loss, together, None, []

    def __len__(self):
        return 4

    def restore(self, number, checkpoint, manifest):
        self.model = 0 if checkpoint is None else manifest["model"]
        assert self.model == number
        self.log.append(f"restore {number}")

    def can_stop(self, number):
        return number % self.together == 0

    def progress_after(self, number):
        return 100 * (number + 1)

    def play(self, number, needs_rows):
        self.log.append(f"submit {number}")
        self.model += 1
        return self._wait(number)

    def _wait(self, number):
        self.log.append(f"wait {number}")
        for half in (1, 2):
            totals = [TaskTotals(10, self.loss, True, worker="a", seconds=0.5)]
            yield RoundReport(100 * number + 50 * half, 0.1, totals, None, 7 * half, {"half": half})

    def save_checkpoint(self, checkpoint):
        self.log.append("save")
        return {"model": self.model}

    def save_model(self, model):
        raise AssertionError("the loop writes no model")


class CountingWatch:
    """Looks at all rounds, and stops a run after one of them."""

    def __init__(self, run, stops_after=()):
        self.run, self.stops_after, self.reason, self.rounds, self.before = run, stops_after, None, [], None

    def rounds_restored(self, history):
        self.before = [entry["round"] for entry in history]

    def needs_rows(self, number):
        return True

    def may_stop(self, number):
        return number in self.stops_after

    def round_ended(self, entry, rows):
        self.rounds.append(entry["round"])
        if self.may_stop(entry["round"]) and entry["round"] == max(self.stops_after):
            self.reason = "enough"

    def await_results(self):
        self.run.log.append("settle")

    def checkpoint_written(self):
        self.run.log.append("saved")


def play(run, folder, seconds=math.inf, stops_after=()):
    reports, watch = [], CountingWatch(run, stops_after)
    result = train_rounds(run, folder, 400, seconds, reports.append, watch)
    assert run.log.pop() == "settle", "what is measured of the last rounds is in the history"
    return result, reports, watch.rounds


@pytest.fixture
def folder(tmp_path):
    return Store(str(tmp_path))


def test_loop__makes_an_entry_a_round_and_a_progress_for_each_report(folder):
    result, reports, evaluated = play(CountingRun(), folder)
    assert [entry["round"] for entry in result.history] == evaluated == [0, 1, 2, 3]
    first = {name: value for name, value in result.history[0].items() if name != "seconds"}
    assert first == {
        "round": 0,
        "progress": 100,
        "words": 14,
        "pairs": 20,
        "loss": 2.0,
        "alpha": 0.1,
        "compiling": 0.0,
        "half": 2,
    }
    assert [progress.done for progress in reports] == [50, 100, 150, 200, 250, 300, 350, 400]
    assert result.shares == {"a": (80, 4.0)}
    assert (result.threads, result.facts) == (3, {"matrix": 1})


def test_loop__submits_rounds_ahead(folder):
    run = CountingRun(ahead=2)
    play(run, folder)
    assert run.log == [
        "restore 0",
        "submit 0",
        "submit 1",
        "wait 0",
        "submit 2",
        "wait 1",
        "submit 3",
        "wait 2",
        "wait 3",
    ]


def test_loop__holds_no_rows_of_a_round_while_the_next_one_is_trained(folder):
    class Rows:
        """Rows of a model."""

    held = weakref.WeakSet()

    class RunOfRows(CountingRun):
        def _wait(self, number):
            for report in super()._wait(number):
                assert len(held) == (0 if report.facts["half"] == 1 else 1), "those of this round's last report"
                rows = Rows()
                held.add(rows)
                yield report._replace(rows=rows)
                del rows

    run = RunOfRows(ahead=2)
    play(run, folder)
    assert run.log.count("wait 3") == 1


@pytest.mark.parametrize("ahead", [1, 3])
def test_loop__writes_a_checkpoint_when_no_round_is_under_way_and_goes_on_from_it(folder, ahead):
    run = CountingRun(ahead)
    play(run, folder, seconds=0)
    once = ["settle", "save", "restore {}", "saved"]
    assert run.log == [
        "restore 0",
        *(step.format(n + 1) for n in range(3) for step in (f"submit {n}", f"wait {n}", *once)),
        "submit 3",
        "wait 3",
    ]
    _, manifest = checkpoint.find_newest(folder)
    assert (manifest["next_pass"], manifest["model"], len(manifest["history"])) == (3, 3, 3)


def test_loop__writes_no_checkpoint_between_rounds_that_are_trained_together(folder):
    run = CountingRun(ahead=4, together=2)
    play(run, folder, seconds=0)
    assert [step for step in run.log if step in ("save", "wait 0", "wait 1", "wait 2")] == [
        "wait 0",
        "wait 1",
        "save",
        "wait 2",
    ]


def test_loop__takes_the_seconds_that_a_report_has(folder):
    class SharingRun(CountingRun):
        def _wait(self, number):
            return (report._replace(seconds=number + 0.5) for report in super()._wait(number))

    result, *_ = play(SharingRun(), folder)
    assert [entry["seconds"] for entry in result.history] == [1.0, 3.0, 5.0, 7.0]


def test_loop__resumes_from_the_newest_checkpoint(folder):
    before, *_ = play(CountingRun(), folder)
    checkpoint.finish(folder, checkpoint.folder(folder, 2), {"next_pass": 2, "model": 2, "history": before.history[:2]})
    run = CountingRun()
    result, _, evaluated = play(run, folder)
    assert run.log[:2] == ["restore 2", "submit 2"]
    assert evaluated == [2, 3]
    assert result.history[:2] == before.history[:2]
    assert [entry["round"] for entry in result.history] == [0, 1, 2, 3]


@pytest.mark.parametrize("seconds", [0, math.inf])
def test_loop__begins_no_round_while_the_one_before_may_stop_the_run(folder, seconds):
    run = CountingRun(ahead=3)
    result, _, seen = play(run, folder, seconds, stops_after=(0, 2))
    assert [step for step in run.log if step[:4] in ("subm", "wait")] == [
        "submit 0",
        "wait 0",
        *(
            ["submit 1", "wait 1", "submit 2", "wait 2"]
            if seconds == 0
            else ["submit 1", "submit 2", "wait 1", "wait 2"]
        ),
    ]
    assert (result.stopped, run.model, seen) == ("enough", 3, [0, 1, 2])
    assert checkpoint.find_newest(folder) is None or checkpoint.find_newest(folder)[1]["next_pass"] == 2


def test_loop__was_not_stopped_where_the_last_round_was_trained(folder):
    result, *_ = play(CountingRun(), folder, stops_after=(3,))
    assert (result.stopped, len(result.history)) == (None, 4)


def test_newest__goes_by_one_answer_of_a_store_that_may_give_another_next(folder, monkeypatch):
    checkpoint.finish(folder, checkpoint.folder(folder, 2), {"next_pass": 2})
    answers = iter([{"next_pass": 2}])  # then the file is not known
    monkeypatch.setattr(Store, "read_manifest", lambda store: next(answers, None))
    assert checkpoint.find_newest(folder) == (checkpoint.folder(folder, 2), {"next_pass": 2})


def test_loop__stops_at_a_loss_that_is_not_finite(folder):
    with pytest.raises(TrainingError, match=r"A number in pass 0 holds NaN or infinity \(alpha=0\.1\)"):
        play(CountingRun(loss=math.nan), folder)
