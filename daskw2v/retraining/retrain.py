"""Retraining: trains, checks and publishes a new version for the present text, and sends notices.

After an interruption, the same call resumes at the step where the earlier run stopped. A version is served once it is
published; a candidate is a trained model that has not passed the gates yet.

candidates/<run>/          the candidate as trained, until it is published or another run begins
models/<version>/          the finished version: the candidate, rotated into the served version's space
retraining/<version>.json  summary of the run, written after notices were sent; if it is missing, they are sent again
"""

import time
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, NamedTuple

from distributed import Client

from daskw2v.cluster.connecting import opening_once
from daskw2v.cluster.console import listening
from daskw2v.collections.kinds import TextInputs
from daskw2v.collections.parts import text_finder
from daskw2v.config.arguments import check_type
from daskw2v.config.identity import identity_fields
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.corpus.files import Source
from daskw2v.corpus.sources import find_sources, plan_blocks
from daskw2v.errors import BusyError, Daskw2vError, FrozenError, InputError, ParameterError, SupersededError, counted
from daskw2v.evaluation import Score
from daskw2v.extras import needed
from daskw2v.models.alignment import Alignment, find_alignment
from daskw2v.models.index.vectors import index_version
from daskw2v.models.queries.vectors import Vectors
from daskw2v.models.stored.store import assign_stable_ids, read_sources, write_ids, write_tokenizer
from daskw2v.models.versions.finished import FOLDER, RUN, Version, next_version, parse_number, parse_run_id
from daskw2v.models.versions.phrases import write_phrases
from daskw2v.models.versions.state import read_history, read_state
from daskw2v.models.versions.versions import Versions, fence_versions, latest_version, list_served
from daskw2v.progress import Listener, Progress, Watching
from daskw2v.retraining.align import read_alignment, write_aligned
from daskw2v.retraining.clearing import clear_unused, note_uses
from daskw2v.retraining.gates import Evaluated, Gates, Verdict, check_gates, evaluate_sets, judge, measure_novelty
from daskw2v.retraining.notify import Notices, send_notices
from daskw2v.retraining.outcome import Outcome, Summary
from daskw2v.retraining.policy import Changes, Policy, compare_sources
from daskw2v.sampling.excerpt import Range, find_block_ranges, make_excerpt
from daskw2v.shards.layout import Corpus, digest
from daskw2v.store.lease import hold, hold_run
from daskw2v.store.storage import Store
from daskw2v.store.urls import Location
from daskw2v.training.preparation.choice import choose_strategy, find_choice, with_recorded_choice
from daskw2v.training.preparation.planned import PlannedRun, run_folder, settled_params
from daskw2v.training.preparation.repair import repair_and_retry
from daskw2v.training.preparation.request import Request, open_cluster, read_text
from daskw2v.training.start.base_settings import get_frozen_words
from daskw2v.training.start.named_tables import without_contents
from daskw2v.training.version import finish_version, write_version
from daskw2v.training.watch.callbacks import Callback
from daskw2v.training.watch.events import Callbacks
from daskw2v.vocabulary.count import StoredVocabulary
from daskw2v.vocabulary.turnover import WordRules, compare_words

RECORD = "retraining"  # key of the run's record in a version's manifest; folder of summaries


class RunText(NamedTuple):
    """The text of a run: its corpus and vocabulary, the changes of files, and the ranges of positions of new text.

    New text is that of new and changed files.
    """

    corpus: Corpus
    vocabulary: StoredVocabulary
    changes: Changes
    unread: Sequence[Range]


class RunResult(NamedTuple):
    """The result of a run; the fields are as in `Summary`."""

    outcome: Outcome
    message: str
    version: str | None = None
    verdict: Verdict | None = None
    alignment: Alignment | None = None
    figures: Mapping[str, float] = {}


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
        As in `train`; only `work` is required. Params other than the served version's train from scratch, on
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
        Its outcome is published, nothing new, stopped by a gate, busy, superseded or staged. Failures raise.

    Raises
    ------
    Daskw2vError
        As `train` does. Notices have been sent, except of arguments that are refused; the run has not changed what is
        served.

    Examples
    --------
    >>> settings = {"work": "nightly", "vector_size": 8, "min_count": 1, "epochs": 1, "listener": None}
    >>> daskw2v.retrain("text.txt", **settings).outcome.label
    'published'
    >>> daskw2v.retrain("text.txt", **settings).outcome.label
    'nothing_new'
    """
    request = Request.from_call("retrain", inputs, params, resources, client, callbacks, settings)
    params, resources = request.params, request.resources
    policy = Policy() if policy is None else policy
    gates = Gates() if gates is None else gates
    notices = Notices() if notices is None else notices
    _check_settings(params, resources, policy, gates, notices)
    store, key = request.open_store(work), uuid.uuid4().hex
    send = partial(send_notices, notices=notices, storage_options=resources.storage_options)
    summarize = partial(_summarize, store, datetime.now(UTC), time.monotonic(), send)
    with listening(listener) as listen:
        try:
            what = f"the retraining in {store.url}"
            with hold(store, "retrain", what, taken_over=partial(fence_versions, store)) as lease:
                guarded, heard = lease.guard(store), lease.guarding(listen)
                settled, calls = settled_params(request.settled(guarded, heard)), request.callbacks
                run = RetrainingRun(request.inputs, guarded, settled, resources, policy, gates, full, heard, calls, key)
                summary = summarize(run.run(client), listen)
                if summary.outcome is Outcome.PUBLISHED:
                    record(guarded, summary)
        except Exception as error:
            summary = summarize(_result_of_error(error, store, key), listen)
            if summary.outcome is Outcome.FAILED:
                raise
    return summary


def _check_settings(params: Params, resources: Resources, policy: Policy, gates: Gates, notices: Notices) -> None:
    """Check settings of a retraining before anything is read; raises ParameterError, or MissingExtraError."""
    for cls, settings in ((Policy, policy), (Gates, gates), (Notices, notices)):
        check_type(cls.__name__.lower(), settings, cls, f"daskw2v.{cls.__name__}(...)")
    for name in ("base_model", "base_matrix"):
        if (value := params.flat().get(name)) is not None:
            problem = f"{name}={value!r} cannot be used in retraining, which starts from the served version."
            raise ParameterError(problem, f"Leave {name} out, or use it in training.")
    if (frozen := get_frozen_words(params)) is not None:
        reason = "each version starts from the one before it, and is rotated as a whole"
        problem = f"frozen_words={frozen!r} cannot be used in retraining: {reason}."
        remedy = "Leave frozen_words out, or use it in training; the policy's anchor holds known words back."
        raise ParameterError(problem, remedy)
    if resources.word_losses:
        problem = "word_losses=True: retraining does not store losses of words."
        raise ParameterError(problem, "Leave it out, or use it in training.")
    check_gates(gates, resources.eval_sets)
    if policy.index:
        needed("usearch", "ann")


def _result_of_error(error: Exception, store: Store, key: str) -> RunResult:
    """Return the result of a run that ended by an error: failed or busy, or published if the error came later.

    `key` is the run's key in the history.
    """
    outcome = Outcome.BUSY if isinstance(error, BusyError) else Outcome.FAILED
    message = str(error) if isinstance(error, Daskw2vError) else type(error).__name__
    try:
        served = _served_by(store, key)
    except Daskw2vError:
        served = None
        message = f"{message.rstrip('.')}. The store does not say whether the new version is served."
    if served is not None:
        outcome, message = Outcome.PUBLISHED, f"{served} is served. After that: {message}"
    return RunResult(outcome, message, served)


def _summarize(
    store: Store,
    started: datetime,
    clock: float,
    send: Callable[[Summary], list[str]],
    result: RunResult,
    hear: Listener,
) -> Summary:
    """Return the summary of a run with a result, and send its notices by `send`; `hear` receives failures to send.

    The run began at the time `started`, when `time.monotonic` was `clock`.
    """
    values, seconds = result._asdict(), time.monotonic() - clock
    with suppress(Daskw2vError):  # the store itself may have failed
        if (served := served_version(store)) is not None:
            values |= {"served": served.name, "served_since": served.created}
    summary = Summary(work=store.url, started=started, seconds=seconds, **values)
    for problem in send(summary):
        hear(Progress("notify", 0, 0, "notices", message=problem))
    return summary


@dataclass(frozen=True)
class RetrainingRun:
    """A retraining run.

    Parameters
    ----------
    inputs, work, params, resources
        As in `train`; the Params are settled.
    policy, gates
        The rules of training, and the requirements for the candidate.
    full
        Whether to train from scratch, on all text.
    listener
        Receives progress.
    callbacks
        Receive the events of the training.
    key
        Names the run in the history of the versions.
    """

    inputs: TextInputs
    work: Store
    params: Params
    resources: Resources
    policy: Policy
    gates: Gates
    full: bool
    listener: Listener
    callbacks: Callbacks
    key: str

    def run(self, client: Client | None) -> RunResult:
        """Do all remaining steps; return the result. The caller holds the lease of retraining and sends notices."""
        resources = self.resources
        ready = partial(open_cluster, client, self.work, self.params, resources, self.listener)
        with (
            opening_once(ready) as cluster,
            text_finder(self.inputs, self.work, self.params, resources, cluster, self.listener) as find,
        ):
            damaged, foreign = Versions(self.work).problems()
            served = latest_version(self._models)
            if served in foreign:  # it would be replaced by a version that does not descend from it
                raise foreign[served]
            problems = {name: damage[0].problem for name, damage in damaged.items()}
            problems |= {name: error.problem for name, error in foreign.items()}
            for name, problem in problems.items():
                self._report("versions", f"{problem} {name} is passed over.")
            run = partial(self._run, cluster, find, served, frozenset(damaged), frozenset(foreign))
            return repair_and_retry(self.work, self.listener, run, cluster)

    def _run(
        self,
        cluster: Callable[[], Client],
        find: Callable[[], list[Source]],
        base: str | None,
        damaged_before: frozenset[str],
        foreign: frozenset[str],
        damaged_since: Collection[str],
    ) -> RunResult:
        """Do all remaining steps, passing over damaged versions and versions of another daskw2v; return the result.

        `cluster` and `find` return the client and the files of the text; `base` is the name of the version that is
        served when the run begins, or None. The further arguments are names of versions: damaged before the first step,
        of another daskw2v, and damaged where a step met them.
        """
        damaged = damaged_before.union(damaged_since)
        result = self._train_or_publish(cluster, find(), base, damaged | foreign)
        message = result.message
        if foreign:
            message += f" Of another daskw2v and passed over: {', '.join(sorted(foreign))}."
        if damaged:
            message += f" Damaged and passed over: {', '.join(sorted(damaged))}."
        return result._replace(message=message)

    def _train_or_publish(
        self, cluster: Callable[[], Client], now: list[Source], base: str | None, damaged: Collection[str]
    ) -> RunResult:
        """Train and publish a version on the files `now`, unless the version that was served last has this text.

        If that version has this text, it is served again if a damaged version replaced it; or the run ends like the
        interrupted run that published it; or nothing is new. `base` is as in `_run`; `damaged` are names of versions
        that are passed over.
        """
        served = self._find_last_served(damaged)
        if served is None or not self._can_extend(served) or any(compare_sources(self._read_sources(served), now)):
            return self._train(cluster(), now, served, base, damaged)
        if not served.served:  # the version that was served since is damaged
            return self._conclude(served.name, *self._serve(served.name, base))
        if RECORD not in served.manifest or _is_recorded(self.work, served.name):
            return _nothing_new(f"The served version {served.name} already has this text.")
        return self._conclude(served.name, Outcome.PUBLISHED, f"{served.name} is served.")  # by an interrupted run

    def _find_last_served(self, damaged: Collection[str]) -> Version | None:
        """Return the version that was served last, or is served, of all that are not `damaged`; None without one."""
        intact = {version.name: version for version in Versions(self.work).all() if version.name not in damaged}
        return next((intact[name] for name in list_served(self._models) if name in intact), None)

    def _train(
        self, client: Client, now: list[Source], served: Version | None, base: str | None, damaged: Collection[str]
    ) -> RunResult:
        """Train a version on the files `now`, check and publish it; return the result.

        `served` is the version that gates compare with, and training starts from if `_can_extend`; or None. `base` is
        as in `_run`; `damaged` are passed over.
        """
        corpus, vocabulary = read_text(now, self.work, self.params, self.resources, lambda: client, self.listener)
        changes = compare_sources(self._read_sources(served), corpus.sources)
        run = PlannedRun(corpus, vocabulary, self.work, self.params, self.resources, self.callbacks)
        unread = find_block_ranges(corpus, self.work, self._find_blocks(changes))
        if served is not None and self._can_extend(served):
            asked_params = with_recorded_choice(served.manifest["params"], self.params)
            seed = asked_params.seed + parse_number(served.name)  # another sample for each version
            chosen = self.policy.choose(corpus, unread, seed)
            new, all_text = sum(stop - start for start, stop in unread), corpus.n_tokens
            params = self.policy.params_after(asked_params, served.name, new / all_text)
            run = replace(run, corpus=chosen.text, params=params, new=chosen.new)
        else:
            run = find_choice(run, self.listener) or choose_strategy(run, client, self.listener)
            asked_params = run.params
        text = run.corpus
        if not text.n_tokens:
            return _nothing_new(f"No file is new; {counted(len(changes.gone), 'file')} removed.")
        if text is not corpus:
            text.save(self.work)
        run_id, halves = run.name, [half for half in run.text if half is not None]
        note_uses(self.work / RECORD, run_id, (corpus, text, *halves), vocabulary.key)
        with hold_run(self.work, run_id, partial(fence_versions, self.work)) as lease:
            work, heard = lease.guard(self.work), lease.guarding(self.listener)
            guarded = replace(self, params=asked_params, work=work, listener=heard)
            version = next_version(guarded._models, run_id, damaged)
            if (guarded._models / version).read_manifest() is None:
                guarded._drop_candidates(run_id)
                candidate = guarded._candidates / run_id
                write_version(candidate, run.guarded(lease), client, guarded.listener)
                run_text = RunText(corpus, vocabulary, changes, unread)
                stopped = guarded._check_and_write(client, version, candidate, served, run_text)
                if stopped is not None:
                    self.callbacks.ended(guarded.listener)
                    return stopped
            elif _is_recorded(self.work, version) or version in _served_before(self.work):
                return _nothing_new(f"{version}, which was published before, already has this text.")
            if self.policy.index:
                index_version(guarded._models / version, threads=self.resources.threads or 0)
            outcome, message = guarded._serve(version, base)
            if outcome is Outcome.SUPERSEDED:
                self.callbacks.ended(guarded.listener)
            else:
                vectors = Vectors.open((guarded._models / version).url, self.resources.storage_options)
                self.callbacks.published(run.trained, vectors, guarded.listener)
        return self._conclude(version, outcome, message)

    def _check_and_write(
        self, client: Client, version: str, candidate: Store, served: Version | None, text: RunText
    ) -> RunResult | None:
        """Check a candidate against `served`; return the result if a gate stops it.

        Otherwise write it, aligned if the policy says so, as the finished version `version`, and return None.
        """
        folder, options, corpus = self._models / version, self.resources.storage_options, text.corpus
        new = Vectors.open(candidate.url, options)
        trained = new.metadata["corpus"]["tokens"]
        figures = {"tokens": corpus.n_tokens, "tokens_trained": trained, "words": len(new), **text.changes.figures()}
        served_vectors = None if served is None else Vectors.open((self._models / served.name).url, options)
        self._report("judge", counted(len(new), "word") + ("" if served is None else f" against {served.name}"))
        sets = self._digest_sets()
        evaluated = Evaluated(new, self._find_scores(new, sets))
        served_scores = novelty = None
        if served_vectors is not None:
            served_scores = Evaluated(served_vectors, self._find_scores(served_vectors, sets))
            unread = make_excerpt(corpus, text.unread)
            novelty = measure_novelty(client, unread, text.vocabulary, new.vocabulary, served_vectors.vocabulary)
        verdict = judge(self.gates, evaluated, served_scores, novelty)
        if not verdict.passed:
            reasons = "; ".join(gate.text for gate in verdict.failed)
            message = f"{reasons}. {text.changes.name_new()} The candidate is at {new.url}."
            return RunResult(Outcome.STOPPED, message, None, verdict, None, figures)
        alignment = None
        if served_vectors is not None and self.policy.align and served_vectors.vector_size == new.vector_size:
            alignment = find_alignment(new, served_vectors)
        self._report("publish", f"writing {version}")
        write_aligned(client, candidate, folder, alignment)
        write_phrases(folder, self.work, corpus)
        write_tokenizer(folder, self.work, self.params)
        # Not the ids of the served version: after a rollback it lacks ids that later versions assigned
        earlier = Versions(self.work).newest_with_ids() or (None if served is None else self._models / served.name)
        write_ids(folder, assign_stable_ids(earlier, new.vocabulary))
        recorded = {
            "parent": None if served is None else served.name,
            "params": self.params.as_dict(),
            "policy": asdict(self.policy),
            "gates": verdict.as_dict(),
            "alignment": None if alignment is None else alignment.as_dict(),
            "vocabulary": None if served_vectors is None else _compare_vocabularies(served_vectors, new),
            "sets": sets,
            "scores": {name: score._asdict() for name, score in evaluated.scores.items()},
            "figures": figures,
        }
        finish_version(client, folder, {**new.metadata, RECORD: recorded})
        return None

    def _find_blocks(self, changes: Changes) -> set[str]:
        """Return the keys of the blocks of new and changed files."""
        resources = self.resources
        blocks = plan_blocks(changes.unread, resources.block_bytes, resources.storage_options, resources.store_timeout)
        return {block.key for block in blocks}

    def _serve(self, version: str, base: str | None) -> tuple[Outcome, str]:
        """Serve a version instead of `base`; return the outcome, and a sentence on it.

        It is not served if it is to be staged, if the versions are frozen, or if another one than `base` is served.
        """
        if self.resources.stage:
            return Outcome.STAGED, f"{version} is finished, and not served. `daskw2v versions promote` serves it."
        try:
            expected = _served_by(self.work, self.key) or base  # the run served a version that was damaged
            request = f"{self.key} {version}"
            Versions(self.work).publish(version, expected=expected, reason="retrain", request=request)
        except FrozenError as frozen:
            return Outcome.STAGED, str(frozen)
        except SupersededError as superseded:
            return Outcome.SUPERSEDED, str(superseded)
        return Outcome.PUBLISHED, f"{version} is served."

    def _conclude(self, version: str, outcome: Outcome, message: str) -> RunResult:
        """Return the result of a run that finished a version; if the outcome is published, call `_clear_up`."""
        recorded = Versions(self.work).find(version).manifest.get(RECORD)
        if outcome is Outcome.PUBLISHED:
            self._clear_up(version, (recorded or {}).get("parent"))
        if recorded is None:  # made by `train`
            return RunResult(outcome, message, version)
        alignment = recorded["alignment"] and read_alignment(self._models / version, recorded["alignment"])
        verdict = Verdict.from_dict(recorded["gates"])
        return RunResult(outcome, message, version, verdict, alignment, recorded["figures"])

    def _clear_up(self, version: str, parent: str | None) -> None:
        """Delete results that neither a version nor its parent needs, and versions beyond the policy's `keep`.

        The parent's results are kept for a rollback.
        """
        self._drop_candidates()
        run_folder(self.work, parse_run_id(version)).remove()
        runs = {parse_run_id(name) for name in (version, parent) if name is not None}
        for name in clear_unused(self.work, self.work / RECORD, runs):
            self._report("clear", f"{RECORD}/{name} is of another daskw2v: no text or words are deleted.")
        Versions(self.work).gc(self.policy.keep)

    def _drop_candidates(self, run_id: str | None = None) -> None:
        """Delete all candidates, except that of the run `run_id`."""
        for name in self._candidates.children():
            if RUN.fullmatch(name) and name != run_id:
                (self._candidates / name).remove()

    def _digest_sets(self) -> str | None:
        """Return a digest of the names and versions of the evaluation sets' files; None if one is no readable file."""
        resources = self.resources
        urls = [url for _, urls_of_kind in sorted(resources.eval_sets.items()) for url in urls_of_kind]
        try:
            sources = find_sources(urls, "text", resources.storage_options, resources.store_timeout, folders=False)
        except InputError:  # if a set cannot be read at all, evaluation reports it
            return None
        return digest([[source.url, source.size, source.version] for source in sources])

    def _find_scores(self, vectors: Vectors, sets: str | None) -> dict[str, Score]:
        """Return a version's score of each evaluation set, recorded ones if the sets have the same digest `sets`."""
        recorded = vectors.metadata.get(RECORD, {})
        if sets is not None and recorded.get("sets") == sets:
            return {name: Score(**values) for name, values in recorded["scores"].items()}
        return evaluate_sets(vectors, self.resources)

    def _can_extend(self, version: Version) -> bool:
        """Return whether the run starts from a version, as this has the same Params, apart from the policy's."""
        if self.full:
            return False
        version_params = version.manifest.get(RECORD, version.manifest)["params"]
        try:
            version_settled = settled_params(type(self.params).from_dict(version_params))
        except ParameterError:  # made by a release with other fields
            return False
        own_params = with_recorded_choice(version_params, self.params)
        return identity_fields(without_contents(version_settled)) == identity_fields(without_contents(own_params))

    def _read_sources(self, version: Version | None) -> list[Source]:
        """Return the files on which a version was trained; none if the version does not list them."""
        return [] if version is None else read_sources(self._models / version.name) or []

    def _report(self, stage: str, message: str) -> None:
        """Report a message of a stage to the listener."""
        self.listener(Progress(stage, 0, 0, "models", message=message))

    @property
    def _models(self) -> Store:
        """Folder of the versions."""
        return self.work / "models"

    @property
    def _candidates(self) -> Store:
        """Folder of the candidates."""
        return self.work / "candidates"


def served_version(work: Store) -> Version | None:
    """Return the served version of a work directory; None before the first, or if its manifest cannot be read."""
    return next((version for version in Versions(work).all() if version.served), None)


def _served_by(work: Store, key: str) -> str | None:
    """Return the name of the version that a run served last, by the run's key in the history; None without one."""
    requests = read_state(work / FOLDER).requests
    return next((requests[request].served for request in reversed(list(requests)) if request.startswith(key)), None)


def _served_before(work: Store) -> set[str | None]:
    """Return the names of the versions served in states of the history; None for states without a served version."""
    return {state.name for state in read_history(work / FOLDER)}


def record(work: Store, summary: Summary) -> None:
    """Write the summary of a run that published a version; this marks the run's notices as sent."""
    (work / RECORD).write_manifest(summary.as_dict(), f"{summary.version}.json")


def _is_recorded(work: Store, version: str) -> bool:
    """Return whether the notices of the run that published a version were sent."""
    return (work / RECORD / f"{version}.json").exists()


def _compare_vocabularies(old: Vectors, new: Vectors) -> dict[str, Any]:
    """Return the words that a new version has gained and lost since the version before, as JSON types."""
    rules = (WordRules.from_params(vectors.metadata["params"], str(vectors.url)) for vectors in (old, new))
    return compare_words(old.vocabulary, new.vocabulary, *rules).as_dict()


def _nothing_new(message: str) -> RunResult:
    """Return the result of a run without new text."""
    return RunResult(Outcome.NOTHING_NEW, message)
