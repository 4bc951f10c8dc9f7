"""Retraining: trains, checks and publishes a new version for the present text, and sends notices.

Each step resumes where an earlier run stopped: after an interruption, make the same call again.
"""

import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from distributed import Client

from daskw2v.cluster.console import listening
from daskw2v.collections.kinds import TextInputs
from daskw2v.config.arguments import check_type
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.errors import BusyError, Daskw2vError, ParameterError
from daskw2v.extras import needed
from daskw2v.progress import Listener, Progress, Watching
from daskw2v.retraining.gates import Gates, check_gates
from daskw2v.retraining.notify import Notices, send_notices
from daskw2v.retraining.outcome import Outcome, Summary
from daskw2v.retraining.policy import Policy
from daskw2v.retraining.run import RetrainingRun, RunResult, record, served_version
from daskw2v.store.lease import hold
from daskw2v.store.storage import Store
from daskw2v.store.urls import Location
from daskw2v.training.planned import settled_params
from daskw2v.training.request import Request
from daskw2v.training.start.base_settings import frozen_words_of
from daskw2v.training.watch.callbacks import Callback


def retrain(
    inputs: TextInputs,
    *,
    work: Location,
    params: Params | None = None,
    resources: Resources | None = None,
    policy: Policy | None = None,
    gates: Gates | None = None,
    notices: Notices | None = None,
    full: bool = False,
    client: Client | None = None,
    listener: Watching = "show",
    callbacks: Sequence[Callback] = (),
    **settings: Any,
) -> Summary:
    """Train a new version on text that is new since the served version, and publish it if it passes the gates.

    Only new and changed files are read. The vocabulary counts all text. Training starts from the vectors of the served
    version, on the text that `policy` selects. A version that passes the `gates` is rotated into the served version's
    space and published. Only one run at a time can hold a work directory.

    Parameters
    ----------
    inputs
        All the text, as in `train`. Files that are no longer listed are no longer counted. Text that is in no file is
        new where it differs from the text before: a partition, or about 32 MB of text of this process.
    work, params, resources, client, listener, callbacks, **settings
        As in `train`; only `work` is required. Params other than those of the served version train from scratch, on
        all text.
    policy
        Text to train on, and how to train.
    gates
        Checks of the new version. `resources` has their evaluation sets.
    notices
        Where to send notices about the outcome.
    full
        Train from scratch, on all text.

    Returns
    -------
    summary
        The outcome: published, nothing new, stopped by a gate, or busy. Failures raise.

    Raises
    ------
    Daskw2vError
        As `train` does. Notices have been sent; the served version is unchanged.

    Examples
    --------
    >>> settings = {"work": "nightly", "vector_size": 8, "min_count": 1, "epochs": 1, "listener": None}
    >>> daskw2v.retrain("text.txt", **settings).outcome.label
    'published'
    >>> daskw2v.retrain("text.txt", **settings).outcome.label
    'nothing_new'
    """
    request = Request.by("retrain", inputs, params, resources, client, callbacks, settings)
    params, resources = request.params, request.resources
    policy = Policy() if policy is None else policy
    gates = Gates() if gates is None else gates
    notices = Notices() if notices is None else notices
    _check(params, resources, policy, gates, notices)
    store = request.open_store(work)
    began, clock = datetime.now(UTC), time.monotonic()

    def conclude(result: RunResult, listen: Listener) -> Summary:
        summary = _summary(result, store, began, time.monotonic() - clock)
        for problem in send_notices(summary, notices, resources.storage_options):
            listen(Progress("notify", 0, 0, "notices", message=problem))
        return summary

    with listening(listener) as listen:
        try:
            with hold(store, "retrain", f"the retraining in {store.url}") as lease:
                guarded, listen_guarded = lease.guard(store), lease.guarding(listen)
                settled = settled_params(request.settled(guarded, listen_guarded))
                run = RetrainingRun(
                    request.inputs, guarded, settled, resources, policy, gates, full, listen_guarded, request.callbacks
                )
                result = run.run(client)
                summary = conclude(result, listen)
                if result.outcome is Outcome.PUBLISHED:
                    record(guarded, summary)
                return summary
        except BusyError as busy:
            return conclude(RunResult(Outcome.BUSY, str(busy)), listen)
        except Exception as error:
            message = str(error) if isinstance(error, Daskw2vError) else type(error).__name__
            conclude(RunResult(Outcome.FAILED, message), listen)
            raise


def _check(params: Params, resources: Resources, policy: Policy, gates: Gates, notices: Notices) -> None:
    """Refuse invalid settings before anything is read."""
    for cls, settings in ((Policy, policy), (Gates, gates), (Notices, notices)):
        check_type(cls.__name__.lower(), settings, cls, f"daskw2v.{cls.__name__}(...)")
    for name in ("base_model", "base_matrix"):
        if (value := params.flat().get(name)) is not None:
            raise ParameterError(
                f"{name}={value!r} cannot be used in retraining, which starts from the served version.",
                f"Leave {name} out, or use it in training.",
            )
    if (frozen := frozen_words_of(params)) is not None:
        raise ParameterError(
            f"frozen_words={frozen!r} cannot be used in retraining: each version starts from the one "
            "before it, and is rotated as a whole.",
            "Leave frozen_words out, or use it in training; the policy's anchor holds known words back.",
        )
    if resources.word_losses:
        raise ParameterError(
            "word_losses=True: retraining does not store losses of words.", "Leave it out, or use it in training."
        )
    check_gates(gates, resources.eval_sets)
    if policy.index:
        needed("usearch", "ann")


def _summary(result: RunResult, store: Store, began: datetime, seconds: float) -> Summary:
    values = result._asdict()
    with suppress(Daskw2vError):  # the store may be what failed
        if (served := served_version(store)) is not None:
            values |= {"served": served.name, "served_since": served.created}
    return Summary(work=store.url, started=began, seconds=seconds, **values)
