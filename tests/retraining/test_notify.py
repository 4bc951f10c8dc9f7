"""What a run came to, and who is told of it, hostile listeners among them."""

import json
import math
import re
import socket
import stat
import threading
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from daskw2v.errors import ParameterError
from daskw2v.models.alignment import Alignment
from daskw2v.retraining import notify
from daskw2v.retraining.gates import Gate, Verdict
from daskw2v.retraining.notify import Notices, send_notices
from daskw2v.retraining.outcome import Outcome, Summary

SECRET = "hunter2-do-not-tell"
STARTED = datetime(2026, 11, 22, 3, 0, tzinfo=UTC)
GATES = (
    Gate("min_score similarity/ws353", 0.5, 0.6, False, "score: 0.5; asked for: at least 0.6"),
    Gate("loss", math.nan, None, False, "mean loss of a pair: nan; asked for: finite"),
    Gate('min_score similarity/"a\\b\n', None, 0.1, False, "score: undefined; asked for: at least 0.1"),
)


@pytest.fixture
def summary():
    return Summary(
        outcome=Outcome.STOPPED,
        work="s3://bucket/work",
        message="3 gates stopped v0002-b.",
        started=STARTED,
        seconds=61.5,
        version="v0002-b",
        served="v0001-a",
        served_since=STARTED,
        verdict=Verdict(GATES),
        alignment=Alignment(np.eye(2), 100, 90, 0.1, 0.9),
        figures={"tokens": 12, "counted": np.int64(7), "loss": math.inf},
    )


def test_outcomes__have_exit_codes_of_their_own():
    assert {outcome.label: int(outcome) for outcome in Outcome} == {
        "published": 0,
        "failed": 2,
        "nothing_new": 3,
        "stopped": 4,
        "busy": 5,
        "superseded": 6,
        "staged": 7,
    }
    assert all(f"{int(outcome)}: {outcome.label.replace('_', ' ')}" in Outcome.__doc__ for outcome in Outcome)


def test_send_notices__sends_none_by_default(summary):
    assert send_notices(summary, Notices()) == []


def test_send_notices__writes_json(summary, tmp_path):
    path = tmp_path / "new" / "summary.json"
    assert send_notices(summary, Notices(summary=path)) == []
    report = json.loads(path.read_text())
    gates = report.pop("gates")
    assert gates["passed"] is False
    assert [gate["value"] for gate in gates["gates"]] == [0.5, None, None]
    assert report == {
        "outcome": "stopped",
        "exit_code": 4,
        "work": "s3://bucket/work",
        "message": "3 gates stopped v0002-b.",
        "started": "2026-11-22T03:00:00+00:00",
        "seconds": 61.5,
        "version": "v0002-b",
        "served": "v0001-a",
        "served_since": "2026-11-22T03:00:00+00:00",
        "alignment": {"shared": 100, "words": 90, "before": 0.1, "after": 0.9, "residual": pytest.approx(0.2**0.5)},
        "figures": {"tokens": 12, "counted": 7, "loss": None},
    }


def test_send_notices__writes_what_prometheus_reads(summary, tmp_path):
    path = tmp_path / "daskw2v.prom"
    path.write_text("old")
    assert send_notices(summary, Notices(textfile=path)) == []
    assert [p.name for p in tmp_path.iterdir()] == ["daskw2v.prom"]  # nothing of how it was written
    assert stat.S_IMODE(path.stat().st_mode) & 0o444  # node_exporter is another user
    lines = path.read_text().splitlines()
    assert path.read_bytes().endswith(b"\n")
    work = 'work="s3://bucket/work"'
    assert f"daskw2v_retrain_last_run_timestamp_seconds{{{work}}} {STARTED.timestamp() + 61.5}" in lines
    assert f'daskw2v_retrain_outcome{{{work},outcome="stopped"}} 1.0' in lines
    assert f'daskw2v_retrain_outcome{{{work},outcome="published"}} 0.0' in lines
    assert f'daskw2v_retrain_served_timestamp_seconds{{{work},version="v0001-a"}} {STARTED.timestamp()}' in lines
    assert f'daskw2v_retrain_gate_passed{{{work},gate="min_score similarity/\\"a\\\\b\\n"}} 0.0' in lines
    assert f'daskw2v_retrain_gate_value{{{work},gate="loss"}} NaN' in lines
    assert f'daskw2v_retrain_alignment_cosine{{{work},when="after"}} 0.9' in lines
    assert f'daskw2v_retrain_figure{{{work},name="loss"}} +Inf' in lines
    assert_is_prometheus(lines)


def assert_is_prometheus(lines):
    """Check lines against the text format: HELP, TYPE, then the samples of that metric; no series twice."""
    label = r'[a-z_]+="(?:[^"\\\n]|\\[\\n"])*"'
    series = re.compile(
        rf"(daskw2v_retrain_[a-z_]+)(\{{{label}(?:,{label})*\}}) (?:NaN|[+-]Inf|-?\d+\.\d+(?:e[+-]\d+)?)"
    )
    metric, seen, metrics = None, set(), []
    for line in lines:
        if match := re.fullmatch(r"# HELP (daskw2v_retrain_[a-z_]+) .+\.", line):
            metric = match[1]
            metrics.append(metric)
        elif line.startswith("#"):
            assert line == f"# TYPE {metric} gauge"
        else:
            match = series.fullmatch(line)
            assert match, line
            assert match[1] == metric
            seen.add((metric, match[2]))
    assert len(metrics) == len(set(metrics))
    assert len(seen) == sum(not line.startswith("#") for line in lines)


def test_send_notices__says_little_of_a_run_that_came_to_little(tmp_path):
    failed = Summary(outcome=Outcome.FAILED, work="w", message="\ud800 no text", started=STARTED, seconds=1)
    assert send_notices(failed, Notices(summary=tmp_path / "s.json", textfile=tmp_path / "s.prom")) == []
    lines = (tmp_path / "s.prom").read_text().splitlines()
    assert_is_prometheus(lines)
    assert {line.split()[2] for line in lines if line.startswith("# TYPE")} == {
        f"daskw2v_retrain_{name}" for name in ("last_run_timestamp_seconds", "duration_seconds", "outcome")
    }
    assert json.loads((tmp_path / "s.json").read_text())["gates"] is None


def test_send_notices__says_what_could_not_be_written_and_goes_on(summary, tmp_path):
    (tmp_path / "file").write_text("")
    notices = Notices(summary=tmp_path / "file" / "s.json", textfile=tmp_path / "s.prom")
    (problem,) = send_notices(summary, notices)
    assert re.search(r"file/s\.json was not written \(.+\)\.", problem)
    assert (tmp_path / "s.prom").exists()


class Listener(BaseHTTPRequestHandler):
    """Takes what is posted, and answers as its server was told."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append((self.path, dict(self.headers), body))
        answer = self.server.answers[min(len(self.server.got), len(self.server.answers)) - 1]
        answer(self)

    def do_GET(self):
        self.server.got.append((self.path, dict(self.headers), None))

    def log_message(self, *args):
        pass


def answering(status, headers=(), body=b""):
    def answer(handler):
        handler.send_response(status, f"{SECRET} {SECRET}")
        for name, text in headers:
            handler.send_header(name, text)
        handler.end_headers()
        handler.wfile.write(body)

    return answer


def dripping(handler):
    """Send a header that never ends, a byte at a time: each comes in time, all never do."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    while not handler.server.done.wait(0.02):
        try:
            handler.wfile.write(b"x")
            handler.wfile.flush()
        except OSError:
            return


def endless(handler):
    handler.send_response(200)
    handler.send_header("Content-Length", str(1 << 60))
    handler.end_headers()
    try:
        while not handler.server.done.is_set():
            handler.wfile.write(bytes(1 << 16))
            handler.server.sent += 1 << 16
    except OSError:
        handler.server.closed.set()


def garbled(handler):
    handler.wfile.write(f"{SECRET} {SECRET}\r\n\r\n".encode())


@pytest.fixture
def listener(monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Listener)
    server.daemon_threads = True
    server.got, server.answers, server.sent = [], [answering(204)], 0
    server.done, server.closed = threading.Event(), threading.Event()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield server
    server.done.set()
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def pauses(monkeypatch):
    """The pauses between tries, which are not made."""
    made = []
    monkeypatch.setattr(notify, "sleep", made.append)
    return made


def notices(server, **choices):
    url = f"http://127.0.0.1:{server.server_port}/hook/{SECRET}?token={SECRET}"
    return Notices(webhook=url, webhook_headers={"Authorization": f"Bearer {SECRET}"}, **choices)


def problem_of(problems):
    (problem,) = problems
    assert SECRET not in problem
    assert problem.startswith("The webhook at 127.0.0.1 ")
    return problem


def test_webhook__gets_the_summary(summary, listener, pauses):
    assert send_notices(summary, notices(listener)) == []
    ((path, headers, body),) = listener.got
    assert path == f"/hook/{SECRET}?token={SECRET}"
    assert headers["Authorization"] == f"Bearer {SECRET}"
    assert headers["Content-Type"] == "application/json"
    assert json.loads(body)["outcome"] == "stopped"
    assert pauses == []


def test_webhook__is_tried_again_where_it_may_pass(summary, listener, pauses):
    listener.answers = [answering(500), answering(429), answering(200, body=b"ok")]
    assert send_notices(summary, notices(listener)) == []
    assert len(listener.got) == 3
    assert pauses == [1, 2]


@pytest.mark.parametrize(
    ("answer", "tries", "message"),
    [
        (answering(500), 3, "answered 500"),
        (answering(503, [("Retry-After", "100000")]), 3, "answered 503"),
        (answering(404), 1, "answered 404"),
        (answering(300), 1, "answered 300: redirects are not followed"),
        (answering(302, [("Location", "file:///etc/passwd")]), 1, "answered 302: redirects are not followed"),
        (answering(307, [("Location", "/other")]), 1, "answered 307: redirects are not followed"),
        (answering(301, [("Location", "http://169.254.169.254/")]), 1, "answered 301: redirects are not followed"),
        (garbled, 3, r"was not reached \(BadStatusLine\)"),
    ],
)
def test_webhook__is_given_up(summary, listener, pauses, answer, tries, message):
    listener.answers = [answer]
    assert re.search(message, problem_of(send_notices(summary, notices(listener))))
    assert [path for path, _, _ in listener.got] == [f"/hook/{SECRET}?token={SECRET}"] * tries
    assert len(pauses) == tries - 1


def test_webhook__is_not_waited_for_longer_than_was_said(summary, listener, pauses):
    listener.answers = [dripping]
    assert "no answer in time" in problem_of(
        send_notices(summary, notices(listener, webhook_timeout=1, webhook_tries=2))
    )
    assert len(listener.got) == 2


def test_webhook__is_not_read(summary, listener, pauses):
    listener.answers = [endless]
    assert send_notices(summary, notices(listener)) == []
    assert listener.closed.wait(60)
    assert listener.sent < 64 << 20  # what lies in buffers


def test_webhook__may_be_nobody(summary, pauses, monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/{SECRET}"
        problem = problem_of(send_notices(summary, Notices(webhook=url, webhook_tries=6)))
    assert "ConnectionRefusedError: Connection refused" in problem
    assert pauses == [1, 2, 4, 8, 16]


def test_webhook__is_called_after_files_that_cannot_be_written(summary, listener, pauses, tmp_path):
    (tmp_path / "file").write_text("")
    listener.answers = [answering(500)]
    actual = send_notices(summary, notices(listener, summary=tmp_path / "file" / "s", textfile=tmp_path / "s.prom"))
    assert len(actual) == 2
    assert len(listener.got) == 3
    assert (tmp_path / "s.prom").exists()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("webhook", f"file:///{SECRET}"),
        ("webhook", f"ftp://host/{SECRET}"),
        ("webhook", f"http:///{SECRET}"),
        ("webhook", f"https://user:{SECRET}@host/"),
        ("webhook", f"http://host/{SECRET}\r\nX: y"),
        ("webhook", f"http://host:port/{SECRET}"),
        ("webhook", f"http://[::1/{SECRET}"),
        ("webhook", SECRET),
        ("webhook_headers", {"X": f"{SECRET}\r\nY: z"}),
        ("webhook_headers", {f"X {SECRET}": "y"}),
        ("webhook_headers", [SECRET]),
    ],
)
def test_notices__refuse_webhooks_without_showing_them(field, value):
    with pytest.raises(ParameterError, match=f"{field}=.*not shown") as caught:
        Notices(**{field: value})
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("textfile", "out.txt"),
        ("textfile", "s3://bucket/x.prom"),
        ("webhook_timeout", 0),
        ("webhook_timeout", 301),
        ("webhook_tries", 0),
        ("webhook_tries", 11),
        ("summary", ""),
    ],
)
def test_notices__refuse_what_is_out_of_range(field, value):
    with pytest.raises(ParameterError, match=f"{field}="):
        Notices(**{field: value})


def test_notices__do_not_show_secrets():
    shown = repr(Notices(webhook=f"https://host/{SECRET}", webhook_headers={"X": SECRET}))
    assert SECRET not in shown
    assert "webhook_timeout=10.0" in shown
