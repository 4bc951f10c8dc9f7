"""Retraining every night as a DAG of Airflow 3: put this file into the folder of DAGs.

On failure
    2 (an error), 1 (a crash), signals and time that ran out: twice more, five minutes apart; it goes on where it
    stopped. 4 (a gate stopped the version), 5 (another run holds the lease) and 6 (another process changed what is
    served) fail at once. 3 (no text is new) and 7 (the version is staged) skip the task, and what follows it.
Overlap
    The second run waits for the first. Runs outside of Airflow hold a lease: then it is 5.
Missed run
    One run for all that were missed, as soon as the scheduler is back.
"""

from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any

from airflow.providers.standard.hooks.subprocess import SubprocessHook
from airflow.sdk import DAG, BaseOperator
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException

CONFIG = "/etc/daskw2v/retrain.toml"


class Retrain(BaseOperator):
    """Runs `daskw2v retrain` in a process of its own; what is killed with the task goes on next time."""

    template_fields = ("config",)

    def __init__(self, *, config: str, **options: Any) -> None:
        super().__init__(**options)
        self.config = config

    @cached_property
    def _hook(self) -> SubprocessHook:
        return SubprocessHook()

    def execute(self, context: Any) -> None:
        """Run it; what it says is in the task's log, the last line of it in the error."""
        code, line = self._hook.run_command(["daskw2v", "retrain", "--config", self.config])
        if code in (3, 7):
            raise AirflowSkipException(line)
        if code in (4, 5, 6):
            raise AirflowFailException(f"Exit code {code}: {line}")  # never tried again
        if code != 0:
            raise AirflowException(f"Exit code {code}: {line}")

    def on_kill(self) -> None:
        """Pass SIGTERM on."""
        self._hook.send_sigterm()


with DAG(
    "daskw2v_retrain",
    schedule="0 3 * * *",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
):
    Retrain(
        task_id="retrain",
        config=CONFIG,
        retries=2,
        retry_delay=timedelta(minutes=5),
        execution_timeout=timedelta(hours=12),
    )
