"""Progress for people: bars on a terminal, lines elsewhere."""

import io

import pytest
from rich.console import Console

from daskw2v import train
from daskw2v.cluster import console
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.errors import ParameterError
from daskw2v.progress import Progress
from daskw2v.stages import build_corpus
from daskw2v.store.storage import Store


def test_lines__writes_start_end_and_a_line_every_few_seconds():
    now, written = [0.0], []
    lines = console.Lines(written.append, clock=lambda: now[0])
    for second in range(11):
        now[0] = float(second)
        lines(Progress("train", second * 1000, 10_000, "tokens", words_per_second=123_450.6, loss=0.5))
    assert written == [
        "train: 0/10k tokens  123k words/s  loss 0.500",
        "train: 5k/10k tokens  123k words/s  loss 0.500  0:00:05 left",
        "train: 10k/10k tokens  123k words/s  loss 0.500",
    ]


def test_lines__writes_messages_at_once_and_in_order():
    now, written = [0.0], []
    lines = console.Lines(written.append, clock=lambda: now[0])
    lines(Progress("train", 0, 0, "", message="2 threads train one model without locks"))
    for done in (50, 60):  # went on from a checkpoint: the time left goes by what was done since
        lines(Progress("train", done, 100, "tokens"))
        now[0] += 1
    lines(Progress("train", 0, 0, "", message="1.0 s of training"))
    assert written == [
        "train: 2 threads train one model without locks",
        "train: 50/100 tokens",
        "train: 60/100 tokens  0:00:08 left",
        "train: 1.0 s of training",
    ]


def test_lines__writes_the_last_report_of_a_stage_that_never_filled():
    written = []
    lines = console.Lines(written.append, clock=lambda: 0.0)
    for done, stage in ((0, "a"), (1, "a"), (0, "b"), (1, "b")):
        lines(Progress(stage, done, 3, "blocks", message="note"))
    lines.finish()
    assert written == [
        "a: 0/3 blocks  note",
        "a: 1/3 blocks  note  0:00:00 left",
        "b: 0/3 blocks  note",
        "b: 1/3 blocks  note  0:00:00 left",
    ]


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"),
        (0.25, "0.25"),
        (999.4, "999"),
        (999.6, "1k"),
        (45_678_901, "45.7M"),
        (5.6e9, "5.6G"),
        (1.25e15, "1250.00T"),
    ],
)
def test_short__keeps_three_digits(number, text):
    assert console._format_number(number) == text


@pytest.mark.parametrize("width", [80, 120, 200])
def test_show_progress__draws_bars_that_fit_the_terminal(width):
    now = [0.0]
    screen = Console(force_terminal=True, record=True, width=width, get_time=lambda: now[0])
    with console.show_progress(screen) as listener:
        listener(Progress("cluster", 0, 0, "workers", message="dashboard at http://here"))
        listener(Progress("vocabulary", 1, 1, "steps", message="a message that is too long " * 9))
        for done in (1, 2):  # further apart than Rich looks back by itself
            listener(Progress("train", done * 56e8, 10 * 56e8, "tokens", words_per_second=9_123_456.7, loss=12.3456))
            now[0] += 3600
    drawn = screen.export_text().splitlines()
    assert "cluster: dashboard at http://here" in drawn
    vocabulary, train = drawn[-2:]  # the last frame; redrawn ones run together
    assert "100% of 1 steps    took 0:00:00 a message" in vocabulary
    assert "20% of 56G tokens left 8:00:00 9.12M words/s  loss 12.346" in train
    assert (len(vocabulary) % width, len(train)) == (0, width)


class Notebook(Console):
    """As in Jupyter, where Rich finds it by IPython."""

    def __init__(self):
        super().__init__(file=io.StringIO(), force_jupyter=False, width=80)
        self.is_jupyter = True

    def print(self, *objects, **_):
        self.file.write(f"{objects[0]}\n")


@pytest.mark.parametrize("terminal", ["dumb", "notebook"])
def test_show_progress__writes_lines_where_bars_cannot_be_drawn(monkeypatch, terminal):
    monkeypatch.setattr(console, "find_spec", lambda _: None)  # no ipywidgets
    screen = (
        Notebook()
        if terminal == "notebook"
        else Console(file=io.StringIO(), force_terminal=True, width=80, _environ={"TERM": "dumb"})
    )
    with console.show_progress(screen) as listener:
        listener(Progress("encode", 0, 2, "blocks"))
    assert screen.file.getvalue() == "encode: 0/2 blocks\n"


def test_listening__takes_a_listener_or_none_and_nothing_else(capsys):
    reports = []
    with console.listening(reports.append) as listener:
        listener(Progress("encode", 0, 2, "blocks"))
    with console.listening(None) as listener:
        listener(Progress("encode", 1, 2, "blocks"))
    assert [report.done for report in reports] == [0]
    assert capsys.readouterr().err == ""
    with pytest.raises(ParameterError, match="listener='loud' is not a function"), console.listening("loud"):
        pass


def test_calls__show_progress_unless_told_otherwise(client, tmp_path, capsys):
    (tmp_path / "text.txt").write_text("a b c d\n" * 50)
    params = Params(vector_size=8, min_count=1, epochs=1, sample=0)
    how = {"params": params, "resources": Resources(threads=1), "client": client}
    train(tmp_path / "text.txt", work=tmp_path / "silent", **how, listener=None)
    assert capsys.readouterr() == ("", "")
    train(tmp_path / "text.txt", work=tmp_path / "shown", **how)
    stages = [line.partition(":")[0] for line in capsys.readouterr().err.splitlines()]
    assert [stage for stage in dict.fromkeys(stages) if stage != "compile"] == [
        "cluster",
        "encode",
        "vocabulary",
        "choose",
        "train",
        "publish",
    ]
    build_corpus(tmp_path / "text.txt", Store(str(tmp_path / "stage")), params, Resources(), client)
    cluster, encode, *_ = capsys.readouterr().err.splitlines()
    assert cluster.startswith(f"cluster: the given client at {client.scheduler.address}")
    assert encode.startswith("encode: 0/400 bytes")
