"""Measurements of rounds while a model trains: tasks on the cluster, for which training does not wait.

This module evaluates the vectors of a round on evaluation sets. `watch.held_out` measures the loss.
"""

import uuid
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from distributed import Client, Future

from daskw2v.cluster.waiting import gather, wait_for_first
from daskw2v.evaluation import evaluate
from daskw2v.models.queries.vectors import Vectors
from daskw2v.progress import Listener, Progress
from daskw2v.store.urls import Options
from daskw2v.training.loop.strategy import ModelRows
from daskw2v.vocabulary.count import StoredVocabulary
from daskw2v.vocabulary.vocabulary import Vocabulary

HistoryEntry = dict[str, Any]  # of a round
_NO_VECTORS = Vectors(Vocabulary.from_words([], []), np.zeros((0, 1), np.float32))
MAX_PENDING = 2  # evaluations that are submitted: each keeps the rows of its round in memory
_SCORES = "scores"  # key in the entry of a round

EvaluationSets = Mapping[str, Any]  # URLs by kind, as `evaluate` takes them


class _Pending(NamedTuple):
    """A result that is awaited; the fields are as in `Measurements.add`."""

    entry: HistoryEntry
    key: str
    activity: str
    describe: Callable[[Any], str]


class Measurements:
    """Waits for results of tasks, and writes them into entries of the history.

    Parameters
    ----------
    client
        The cluster.
    listener
        Called with a message of each result.
    """

    def __init__(self, client: Client, listener: Listener) -> None:
        self._client, self._listener = client, listener
        self._pending: dict[Future, _Pending] = {}

    def add(self, future: Future, entry: HistoryEntry, key: str, activity: str, describe: Callable[[Any], str]) -> None:
        """Write the result of a future into an entry when it is known.

        Parameters
        ----------
        future
            Future of the result.
        entry, key
            The history's entry of the round, and the result's key in the entry.
        activity
            Name of the task, for errors.
        describe
            Function from the result to the message for the listener.
        """
        self._pending[future] = _Pending(entry, key, activity, describe)

    def count_pending(self, key: str) -> int:
        """Return the number of results with this key that are not known yet."""
        return sum(pending.key == key for pending in self._pending.values())

    def is_complete(self, entry: HistoryEntry) -> bool:
        """Return whether no result of an entry is awaited: each is written, or failed."""
        return not any(pending.entry is entry for pending in self._pending.values())

    def write_all(self) -> None:
        """Wait for all results, and write them."""
        while self._pending:
            wait_for_first(self._client, self._pending)
            self.write_known()

    def write_known(self) -> None:
        """Write the results that are known by now, without waiting; report errors, which are not raised."""
        for future in [future for future in self._pending if future.done()]:
            entry, key, activity, describe = self._pending.pop(future)
            try:
                (entry[key],) = gather(self._client, [future], activity)
            except Exception as error:  # no error of a measurement may end the training
                self.report(f"round {entry['round']} could not be evaluated: {error}")
                continue
            self.report(f"round {entry['round']}: {describe(entry[key])}")

    def report(self, message: str) -> None:
        """Send a message to the listener."""
        self._listener(Progress("evaluate", 0, 0, "", message=message))


class TrainingEvaluation:
    """Evaluates the vectors of rounds.

    Parameters
    ----------
    client
        The cluster that has the model.
    vocabulary
        The words of the model.
    sets
        URLs of the sets to evaluate on, by kind.
    storage_options
        Options for fsspec.

    Raises
    ------
    InputError
        If a set cannot be read, before hours of training.
    """

    def __init__(
        self, client: Client, vocabulary: StoredVocabulary, sets: EvaluationSets, storage_options: Mapping[str, Any]
    ) -> None:
        self._client = client
        evaluate(_NO_VECTORS, **sets, storage_options=storage_options)
        self._vocabulary, self._sets, self._storage_options = vocabulary, sets, Options(storage_options)

    def measure(self, entry: HistoryEntry, rows: ModelRows | None, measurements: Measurements, *, needed: bool) -> None:
        """Submit the evaluation of a round; the scores are added to the history's entry of the round.

        The evaluation is skipped where MAX_PENDING are pending, unless it is `needed`, and where no worker can hold the
        input rows. `rows` are the tables after the round; None where the strategy has none.
        """
        number, join = entry["round"], None if rows is None else rows["input"].join
        if rows is None or join is None:
            measurements.report(f"round {number} is not evaluated: the cluster's memory does not hold the model")
            return
        if measurements.count_pending(_SCORES) >= MAX_PENDING and not needed:
            measurements.report(f"round {number} is not evaluated: earlier rounds are still being evaluated")
            return
        arguments = self._vocabulary, self._sets, self._storage_options, join, list(rows["input"].parts)
        key = f"evaluate-{number}-{uuid.uuid4().hex[:8]}"
        future = self._client.submit(_evaluate, *arguments, key=key, retries=1)
        measurements.add(future, entry, _SCORES, "The evaluation", _describe)


def _describe(scores: Mapping[str, float | None]) -> str:
    """Return the scores of evaluation sets, by name, as a message."""
    return ", ".join(f"{name} {'undefined' if score is None else f'{score:.3f}'}" for name, score in scores.items())


def _evaluate(
    vocabulary: StoredVocabulary,
    sets: EvaluationSets,
    storage_options: Options,
    join: Callable[..., Any],
    parts: list[Any],
) -> dict[str, float | None]:
    """Task: join the parts of the input table and evaluate the vectors; return the score of each set, by name."""
    vectors = Vectors(vocabulary.load(), join(*parts))
    return evaluate(vectors, **sets, analogy_methods=("3cosadd",), storage_options=storage_options).scores()
