import pytest

from daskw2v.cluster.tasks import run_tasks
from daskw2v.errors import InputError


def test_run_tasks__answers_every_job(client):
    assert dict(run_tasks(client, "square", lambda x: x * x, {i: (i,) for i in range(100)})) == {
        i: i * i for i in range(100)
    }
    assert list(run_tasks(client, "nothing", lambda: 1, {})) == []


def test_run_tasks__bounds_what_is_in_flight(client, monkeypatch):
    submitted = []
    submit = client.submit
    monkeypatch.setattr(client, "submit", lambda *a, **k: (submitted.append(k["key"]), submit(*a, **k))[1])
    running = run_tasks(client, "one", lambda x: x, {i: (i,) for i in range(100)})
    next(running)
    assert len(submitted) <= 17
    running.close()


tries = []  # a module's list: what a function closes over is copied on its way to the worker


def fail():
    tries.append(1)
    raise InputError("Bad", "text.")


def fail_once():
    tries.append(1)
    if len(tries) == 1:
        raise OSError("network")
    return 7


def test_run_tasks__raises_our_errors_without_another_try(client):
    tries.clear()
    with pytest.raises(InputError, match="Bad text"):
        list(run_tasks(client, "fail", fail, {0: ()}))
    assert len(tries) == 1


def test_run_tasks__tries_other_errors_again(client):
    tries.clear()
    assert list(run_tasks(client, "flaky", fail_once, {0: ()})) == [(0, 7)]
    assert len(tries) == 2
