"""Retraining: from the text as it is now to a new version that is served, and whoever waits for it told.

Each step goes on where an earlier run stopped: one that was cut short is simply called again.
"""

import time
from contextlib import suppress
from datetime import UTC, datetime

from distributed import Client

from daskw2v.arguments import check_arguments, check_kind
from daskw2v.console import listening
from daskw2v.corpus.inputs import Inputs
from daskw2v.errors import BusyError, Daskw2vError, ParameterError
from daskw2v.extras import needed
from daskw2v.lease import hold
from daskw2v.locations import Location, as_url
from daskw2v.params import Params, Resources
from daskw2v.progress import Listener, Progress, Watching
from daskw2v.retraining.gates import Gates, check_gates
from daskw2v.retraining.night import Night, Result, record, served_version
from daskw2v.retraining.notify import Notices, tell
from daskw2v.retraining.outcome import Outcome, Summary
from daskw2v.retraining.policy import Policy
from daskw2v.storage import Store
from daskw2v.train import check_choices, settled_params


def retrain(
    inputs: Inputs,
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
) -> Summary:
    """Make a new version of a model from text that is new since the one that is served, and serve it if it is good.

    Only files that are new or changed are read. The vocabulary is that of all the text; training begins with the
    vectors of the version that is served, on as much text as `policy` says. What passes the `gates` is turned into the
    space of the version before, and published. One run is at work in a work directory at a time.

    Parameters
    ----------
    inputs
        All the text, as in `train`: files that are no longer named are gone, and their words are no longer counted.
    work, params, resources, client, listener
        As in `train`. Other Params than those of the version that is served are trained from scratch, on all text.
    policy
        What to train on, and how.
    gates
        What is asked of the new version; sets to evaluate on are those of `resources`.
    notices
        Who is told.
    full
        Train from scratch, on all text.

    Returns
    -------
    summary
        What it came to: published, nothing new, stopped by a gate, or busy. Failures raise.

    Raises
    ------
    Daskw2vError
        As `train` raises them; what is served has not changed. Those who are to be told have been.
    """
    params = Params() if params is None else params
    resources = Resources() if resources is None else resources
    policy = Policy() if policy is None else policy
    gates = Gates() if gates is None else gates
    notices = Notices() if notices is None else notices
    check_arguments(params=params, resources=resources, **({} if client is None else {"client": client}))
    _check(params, resources, policy, gates, notices)
    store = Store(as_url(work, "work"), dict(resources.storage_options), resources.store_timeout)
    began, clock = datetime.now(UTC), time.monotonic()

    def tell_all(result: Result, listen: Listener) -> Summary:
        summary = _summary(result, store, began, time.monotonic() - clock)
        for problem in tell(summary, notices, resources.storage_options):
            listen(Progress("notify", 0, 0, "notices", message=problem))
        return summary

    with listening(listener) as listen:
        try:
            with hold(store, "retrain", f"the retraining in {store.url}") as lease:
                asked = settled_params(params)
                night = Night(inputs, store, asked, resources, policy, gates, full, lease.guarding(listen))
                result = night.run(client)
                summary = tell_all(result, listen)
                if result.outcome is Outcome.PUBLISHED:
                    record(store, summary)
                return summary
        except BusyError as busy:
            return tell_all(Result(Outcome.BUSY, str(busy)), listen)
        except Exception as error:
            message = str(error) if isinstance(error, Daskw2vError) else type(error).__name__
            tell_all(Result(Outcome.FAILED, message), listen)
            raise


def _check(params: Params, resources: Resources, policy: Policy, gates: Gates, notices: Notices) -> None:
    """Refuse what cannot be before anything is read."""
    for kind, given in ((Policy, policy), (Gates, gates), (Notices, notices)):
        name = kind.__name__
        check_kind(name.lower(), given, kind, f"daskw2v.{name} belongs", f"daskw2v.{name}(...)")
    check_choices(params, resources)
    for name in ("base_model", "base_matrix"):
        if (value := getattr(params, name)) is not None:
            raise ParameterError(
                f"{name}={value!r} is not for retraining, which begins with the version that is served.",
                f"Leave {name} out, or train with it.",
            )
    if resources.word_losses:
        raise ParameterError("word_losses=True: retraining keeps no losses of words.", "Leave it out, or train.")
    check_gates(gates, resources.eval_sets)
    if policy.index:
        needed("usearch", "ann")


def _summary(result: Result, store: Store, began: datetime, seconds: float) -> Summary:
    served = None
    with suppress(Daskw2vError):  # the store may be what has failed
        served = served_version(store)
    return Summary(
        outcome=result.outcome, work=store.url, message=result.message, started=began, seconds=seconds,
        version=result.version, served=None if served is None else served.name,
        served_since=None if served is None else served.created,
        verdict=result.verdict, alignment=result.alignment, figures=result.figures,
    )  # fmt: skip
