"""The recipes for Prefect and Airflow, where these are installed: what each exit code comes to.

`daskw2v retrain` is played by a script.
"""

import os
import runpy
from pathlib import Path

import pytest

SCHEDULES = Path(__file__).parents[2] / "pipelines" / "schedules"
CODES = [0, 1, 2, 3, 4, 5]

pytestmark = pytest.mark.filterwarnings("default")  # theirs


@pytest.fixture
def played(tmp_path, monkeypatch):
    """Let `daskw2v` be a script that ends with the code of the environment; return a function that counts its calls."""
    called, program = tmp_path / "called", tmp_path / "bin" / "daskw2v"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$@" >> "{called}"\necho progress >&2\necho "outcome of $CODE"\nexit $CODE\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")

    def calls():
        lines = called.read_text().splitlines()
        assert set(lines) == {"retrain --config /x.toml"}
        return len(lines)

    return calls


@pytest.mark.parametrize("code", CODES)
def test_airflow__skips_fails_or_tries_again(code, played, tmp_path, monkeypatch):
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path))
    exceptions = pytest.importorskip("airflow.sdk.exceptions")
    recipe = runpy.run_path(str(SCHEDULES / "airflow_dag.py"))
    monkeypatch.setenv("CODE", str(code))
    task = recipe["Retrain"](task_id="retrain", config="/x.toml")
    raised = None
    try:
        task.execute({})
    except exceptions.AirflowException as error:
        raised = error
    again, skip, fail = exceptions.AirflowException, exceptions.AirflowSkipException, exceptions.AirflowFailException
    assert type(raised) is {0: type(None), 3: skip, 4: fail, 5: fail, 6: fail, 7: skip}.get(code, again)
    assert f"outcome of {code}" in str(raised) or code == 0
    assert played() == 1


@pytest.fixture(scope="module")
def prefect_server():
    """A server for these tests."""
    utilities = pytest.importorskip("prefect.testing.utilities")
    with utilities.prefect_test_harness(server_startup_timeout=900):  # a busy machine
        yield


@pytest.mark.parametrize("code", CODES)
@pytest.mark.usefixtures("prefect_server")
def test_prefect__names_what_it_comes_to_and_tries_again_what_may_pass(code, played, monkeypatch):
    recipe = runpy.run_path(str(SCHEDULES / "prefect_flow.py"))
    recipe["run_command"].retry_delay_seconds = 0
    monkeypatch.setenv("CODE", str(code))
    state = recipe["retrain"]("/x.toml", return_state=True)
    names = {0: "Completed", 3: "Skipped", 4: "Stopped", 5: "Busy", 6: "Superseded", 7: "Staged"}
    assert state.name == names.get(code, "Failed")
    assert state.is_completed() == (code in (0, 3, 7))
    assert f"outcome of {code}" in state.message
    assert played() == (3 if code in (1, 2) else 1)
