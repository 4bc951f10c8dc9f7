"""What is written beside our own sentences: nothing that they say already."""

import logging
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from daskw2v.cluster.local import QuietTasks, silencing_dask, silencing_shuffles

KILLED = """
import multiprocessing, os
from daskw2v.cluster.local import start_quiet_tracker

def die():
    lock = multiprocessing.RLock()
    os._exit(1)

if __name__ == "__main__":
    if {quiet}:
        start_quiet_tracker()
    child = multiprocessing.get_context("spawn").Process(target=die)
    child.start()
    child.join()
    print(os.environ.get("PYTHONWARNINGS"))
"""


@pytest.mark.slow
@pytest.mark.parametrize("before", [None, pytest.param("default", marks=pytest.mark.slow)])
@pytest.mark.parametrize("quiet", [True, False])
def test_start_quiet_tracker__keeps_quiet_of_locks_of_killed_workers(tmp_path, before, quiet):
    (tmp_path / "killed.py").write_text(KILLED.format(quiet=quiet))
    env = {name: value for name, value in os.environ.items() if name != "PYTHONWARNINGS"}
    env |= {"PYTHONPATH": os.pathsep.join(sys.path)} | ({"PYTHONWARNINGS": before} if before else {})
    done = subprocess.run(
        [sys.executable, tmp_path / "killed.py"], env=env, capture_output=True, text=True, timeout=100
    )
    assert done.stdout.strip() == str(before)
    assert ("leaked semaphore" in done.stderr) is not quiet


def test_silencing_dask__is_over_in_the_end(capsys):
    logger = logging.getLogger("distributed")
    handler = logging.StreamHandler(sys.stderr)
    logger.addHandler(handler)
    try:
        with silencing_dask():
            logger.warning("worker is gone")
        logger.warning("memory is short")
    finally:
        logger.removeHandler(handler)
    log = capsys.readouterr().err
    assert "worker is gone" not in log
    assert "memory is short" in log


def test_silencing_shuffles__leaves_what_is_not_ordinary(caplog):
    logger = logging.getLogger("distributed.shuffle._scheduler_plugin")
    with silencing_shuffles():
        logger.warning("Shuffle %s initialized by task %r executed on worker %s", "a", "b", "c")
        logger.warning("Shuffle %s restarted due to stimulus '%s'", "a", "b")
    logger.warning("Shuffle %s deactivated due to stimulus '%s'", "a", "b")
    assert [message.split()[2] for message in caplog.messages] == ["restarted", "deactivated"]


@pytest.mark.parametrize("nanny", ["tcp://127.0.0.1:1", None])
def test_quiet_tasks__stays_quiet_to_the_end_of_a_process(caplog, nanny):
    """Dask removes plugins before it stops heartbeats, and logs those that meet a closed scheduler."""
    plugin, worker, logger = QuietTasks(), SimpleNamespace(nanny=nanny), logging.getLogger("distributed.worker")
    before = list(logger.filters)
    try:
        plugin.setup(worker)
        logger.error("a task failed")
        plugin.teardown(worker)
        logger.error("a heartbeat failed")
        assert caplog.messages == ([] if nanny else ["a heartbeat failed"])
    finally:
        logger.filters[:] = before
