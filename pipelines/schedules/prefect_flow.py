"""Retraining every night as a flow of Prefect 3: `python pipelines/schedules/prefect_flow.py` serves it.

On failure
    2 (an error), 1 (a crash) and signals: twice more, five minutes apart; it goes on where it stopped. 4 (a gate
    stopped the version), 5 (another run holds the lease) and 6 (another process changed what is served) are not
    tried again. All fail, by these names; 3 (no text is new) and 7 (the version is staged) complete, by the names
    Skipped and Staged.
Overlap
    The second run is cancelled. Runs outside of Prefect hold a lease: then it is 5.
Missed run
    Runs that are late start when this is served again, one after the other; but for the first they find no new text.
"""

import subprocess

from prefect import flow, task
from prefect.client.schemas.objects import ConcurrencyLimitConfig, ConcurrencyLimitStrategy, State, TaskRun
from prefect.states import Completed, Failed
from prefect.tasks import Task

CONFIG = "/etc/daskw2v/retrain.toml"
COMPLETED = {0: None, 3: "Skipped", 7: "Staged"}
FINAL = {4: "Stopped", 5: "Busy", 6: "Superseded"}  # a retry would end the same


def may_pass(_: Task, __: TaskRun, state: State) -> bool:
    returned = state.data if isinstance(state.data, State) else state  # Prefect 3.7 wraps what the task returned
    return returned.name not in FINAL.values()


@task(retries=2, retry_delay_seconds=300, retry_condition_fn=may_pass, log_prints=True)
def run_command(config: str) -> State:
    command = ["daskw2v", "retrain", "--config", config]
    line = ""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            for line in process.stdout or ():
                print(line.rstrip())
        except BaseException:  # the flow is cancelled; the next run goes on
            process.terminate()
            raise
    if process.returncode in COMPLETED:
        return Completed(name=COMPLETED[process.returncode], message=line.strip())
    return Failed(name=FINAL.get(process.returncode), message=f"Exit code {process.returncode}: {line.strip()}")


@flow(name="daskw2v-retrain")
def retrain(config: str = CONFIG) -> State:
    ended = run_command(config, return_state=True)
    return State(type=ended.type, name=ended.name, message=ended.message)  # a task's own would lose its name


if __name__ == "__main__":
    one = ConcurrencyLimitConfig(limit=1, collision_strategy=ConcurrencyLimitStrategy.CANCEL_NEW)
    retrain.serve(name="nightly", cron="0 3 * * *", global_limit=one, pause_on_shutdown=False)
