"""The recipes of pipelines/schedules: what they call exists, and each exit code of it means what they say.

`daskw2v retrain` is played by a script that says a line and ends with the code that it is told by the environment.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from configparser import RawConfigParser
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
import yaml

from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.retraining.gates import Gates
from daskw2v.retraining.outcome import Outcome
from tests.support.command_line import invoke

ROOT = Path(__file__).parents[2]
SCHEDULES = ROOT / "pipelines" / "schedules"
PROGRAM = "/opt/daskw2v/bin/daskw2v"
COMMAND = re.compile(r'daskw2v"?,? "?retrain"?,? "?--config')
TIME = re.compile(r"[0-5]?\d ([01]?\d|2[0-3]) \* \* \*")  # every night
SUCCESSES = {Outcome.PUBLISHED, Outcome.NOTHING_NEW, Outcome.STAGED}
AGAIN = {1, int(Outcome.FAILED)}  # what may pass; those of no success besides would come to the same again
CODES = [*map(int, Outcome), 1]


@pytest.fixture
def played(tmp_path):
    """An environment in which `daskw2v` is the script; it writes what it was called with, and ends by TERM, too.

    With PIPE it tells when it is up; with AT_ONCE it sends TERM to whoever started it.
    """
    program = tmp_path / "bin" / "daskw2v"
    program.parent.mkdir()
    program.write_text(
        f'#!/bin/sh\necho "$@" > "{tmp_path}/called"\necho progress\necho "outcome of $CODE" >&2\n'
        "run() { for second in $(seq 30); do for i in $(seq 100); do sleep 0.01; done; done; }\n"
        '[ -z "$PIPE" ] || { trap "exit 9" TERM; echo up > "$PIPE"; run; }\n'
        '[ -z "$AT_ONCE" ] || { trap "exit 9" TERM; kill -TERM "$PPID"; run; }\nexit "$CODE"\n'
    )
    program.chmod(0o755)
    return {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}"}


def shell(command, environment, **more):
    return subprocess.run(
        ["sh", "-c", command], env={**environment, **more}, capture_output=True, text=True, timeout=60
    )


def sections(text):
    """Return a unit's settings."""
    unit = RawConfigParser(comment_prefixes=("#",), delimiters=("=",))
    unit.optionxform = str
    unit.read_string(text)
    return {name: dict(unit[name]) for name in unit.sections()}


def crontab():
    """Return the environment and the lines of the crontab: five fields of time, and a command."""
    lines = [line for line in (SCHEDULES / "crontab").read_text().splitlines() if line and not line.startswith("#")]
    settings = dict(line.split("=", 1) for line in lines if re.match(r"\w+=", line))
    return settings, [line.split(maxsplit=5) for line in lines if not re.match(r"\w+=", line)]


def cronjob():
    with (SCHEDULES / "cronjob.yaml").open() as f:
        config, job = yaml.safe_load_all(f)
    return config, job, job["spec"]["jobTemplate"]["spec"]


def recipes():
    return sorted(path for path in SCHEDULES.iterdir() if path.is_file())


@pytest.mark.parametrize("path", recipes(), ids=lambda path: path.name)
def test_recipe__says_what_happens(path):
    head = path.read_text()[:1600]
    assert [heading for heading in ("On failure", "Overlap", "Missed run") if heading not in head] == []


@pytest.mark.parametrize("path", recipes(), ids=lambda path: path.name)
def test_recipe__calls_the_command(path):
    assert path.suffix == ".timer" or COMMAND.search(path.read_text())


def test_recipes__call_a_command_that_exists():
    help = invoke("retrain", "--help")
    assert help.exit_code == 0, help.output
    assert "--config" in help.output


def test_crontab__has_a_time_and_paths():
    settings, ((*time, _),) = crontab()
    assert TIME.fullmatch(" ".join(time))
    assert settings["PATH"].split(":")[0] == os.path.dirname(PROGRAM)
    assert settings["CONFIG"].startswith("/")


@pytest.mark.parametrize("code", CODES)
def test_crontab__mails_failures_alone(code, played, tmp_path):
    settings, ((*_, command),) = crontab()
    assert "%" not in command  # cron ends the line there
    done = shell(command, played, CODE=str(code), CONFIG=settings["CONFIG"])
    assert (tmp_path / "called").read_text() == f"retrain --config {settings['CONFIG']}\n"
    assert (done.returncode == 0) == (code in SUCCESSES)
    assert done.stdout == ("" if code in SUCCESSES else f"progress\noutcome of {code}\n")
    assert done.stderr == ""


def test_service__knows_exit_codes():
    service = sections((SCHEDULES / "daskw2v-retrain.service").read_text())["Service"]
    assert service["Type"] == "oneshot"
    assert {0, *map(int, service["SuccessExitStatus"].split())} == SUCCESSES
    final = set(map(int, service["RestartPreventExitStatus"].split()))
    assert set(CODES) - SUCCESSES - final == AGAIN
    assert service["Restart"] == "on-failure"


def test_service__hinders_neither_the_compiler_nor_dask():
    service = sections((SCHEDULES / "daskw2v-retrain.service").read_text())["Service"]
    assert {"MemoryDenyWriteExecute", "PrivateNetwork", "PrivateDevices", "ProcSubset"}.isdisjoint(service)
    assert {"AF_UNIX", "AF_INET", "AF_INET6"} <= set(service["RestrictAddressFamilies"].split())
    assert service["Environment"] == "XDG_CACHE_HOME=/var/cache"
    assert service["WorkingDirectory"] == f"/var/lib/{service['StateDirectory']}"


def test_timer__makes_up_for_missed_runs():
    timer = sections((SCHEDULES / "daskw2v-retrain.timer").read_text())
    assert timer["Timer"]["Persistent"] == "true"
    assert timer["Install"]["WantedBy"] == "timers.target"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_units__are_what_systemd_reads(tmp_path):
    """Unknown settings and values are warnings. The program is another one: it has to be there."""
    for name in ("daskw2v-retrain.service", "daskw2v-retrain.timer"):
        text = (SCHEDULES / name).read_text()
        (tmp_path / name).write_text(text.replace(PROGRAM, sys.executable))
    units = sorted(tmp_path.iterdir())
    done = subprocess.run(["systemd-analyze", "verify", *units], capture_output=True, text=True, timeout=60)
    assert [line for line in done.stderr.splitlines() if "daskw2v" in line] == []
    when = sections(units[1].read_text())["Timer"]["OnCalendar"]
    subprocess.run(["systemd-analyze", "calendar", when], check=True, capture_output=True, timeout=60)


def test_cronjob__runs_one_at_a_time_and_makes_up_for_an_hour():
    _, job, _ = cronjob()
    assert (job["apiVersion"], job["kind"]) == ("batch/v1", "CronJob")
    assert job["spec"]["concurrencyPolicy"] == "Forbid"
    assert job["spec"]["startingDeadlineSeconds"] == 3600
    assert TIME.fullmatch(job["spec"]["schedule"])
    ZoneInfo(job["spec"]["timeZone"])


def test_cronjob__tries_again_what_may_pass():
    _, _, spec = cronjob()
    pod = spec["template"]["spec"]
    (container,) = pod["containers"]
    away, final = spec["podFailurePolicy"]["rules"]
    assert away == {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}
    assert (final["action"], final["onExitCodes"]["operator"]) == ("FailJob", "In")
    assert final["onExitCodes"]["containerName"] == container["name"]
    assert set(CODES) - SUCCESSES - set(final["onExitCodes"]["values"]) == AGAIN
    assert spec["backoffLimit"] > 0
    assert pod["restartPolicy"] == "Never"  # as podFailurePolicy wants it


def test_cronjob__has_a_config_and_no_secret():
    config, _, spec = cronjob()
    pod = spec["template"]["spec"]
    (container,) = pod["containers"]
    ((name, text),) = config["data"].items()
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    assert volumes.keys() == mounts.keys()
    assert volumes["config"]["configMap"]["name"] == config["metadata"]["name"]
    assert f"--config {mounts['config']}/{name}" in container["args"][0]
    values = tomllib.loads(text)
    assert values.pop("inputs")
    assert values.pop("work")
    Gates(**values.pop("gates"))
    ours = Params.names()
    Params(**{name: value for name, value in values.items() if name in ours})
    Resources(**{name: value for name, value in values.items() if name not in ours})
    assert not re.search("key|secret|token|password|webhook", text, re.IGNORECASE)
    assert "secretRef" in container["envFrom"][0]
    assert not re.fullmatch(r"[a-z0-9./_:@-]+", container["image"])  # no name of an image: it has to be set


@pytest.mark.parametrize("code", CODES)
def test_cronjob__hands_exit_codes_on_but_for_nothing_new(code, played):
    _, _, spec = cronjob()
    (container,) = spec["template"]["spec"]["containers"]
    assert container["command"] == ["sh", "-c"]
    done = shell(container["args"][0], played, CODE=str(code))
    assert done.returncode == (0 if code in SUCCESSES else code)
    assert (done.stdout, done.stderr) == ("progress\n", f"outcome of {code}\n")


def test_cronjob__passes_sigterm_on(played, tmp_path):
    _, _, spec = cronjob()
    (container,) = spec["template"]["spec"]["containers"]
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(
        ["sh", "-c", container["args"][0]], env={**played, "CODE": "0", "PIPE": str(pipe)}, stdout=subprocess.PIPE
    ) as pod:
        pipe.read_text()  # it is up
        pod.send_signal(signal.SIGTERM)
        pod.stdout.read()  # the end: the command has ended, too
    assert pod.returncode == 128 + signal.SIGTERM


def test_cronjob__passes_a_sigterm_on_that_comes_at_once(played):
    """It may come before the shell knows the number of what it has started."""
    _, _, spec = cronjob()
    (container,) = spec["template"]["spec"]["containers"]
    script, number = container["args"][0], "& run=$!"
    assert number in script
    for command in (script, script.replace(number, "& sleep 0.5; run=$!")):
        began = time.monotonic()
        done = shell(command, played, CODE="0", AT_ONCE="1")
        assert (done.returncode, time.monotonic() - began < 25) == (128 + signal.SIGTERM, True)
