"""Measurements of rounds while a model trains: tasks on the cluster, for which training does not wait.

The vectors of a round are evaluated here on sets of words with human judgements. `watch.held_out` measures the loss.
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
MOST_PENDING = 2  # evaluations that wait or run: each keeps the rows of its round in memory
_SCORES = "scores"  # key in the entry of a round

EvaluationSets = Mapping[str, Any]  # URLs by kind, as `evaluate` takes them


class _Measured(NamedTuple):
    """The entry that a result belongs to, its key there, its name, and the function that makes its message."""

    entry: HistoryEntry
    key: str
    what: str
    message_of: Callable[[Any], str]


class Measurements:
    """Results of tasks, which are written into entries of the history.

    Parameters
    ----------
    client
        The cluster.
    listener
        Called with the results.
    """

    def __init__(self, client: Client, listener: Listener) -> None:
        self._client, self._listener = client, listener
        self._waiting: dict[Future, _Measured] = {}

    def add(self, future: Future, entry: HistoryEntry, key: str, what: str, message_of: Callable[[Any], str]) -> None:
        """Write a result into an entry when it is there; `message_of` makes the message of it."""
        self._waiting[future] = _Measured(entry, key, what, message_of)

    def pending(self, key: str) -> int:
        """Return the number of results of a key that are not there yet."""
        return sum(measured.key == key for measured in self._waiting.values())

    def knows(self, entry: HistoryEntry) -> bool:
        """Return whether all results of an entry are there."""
        return not any(measured.entry is entry for measured in self._waiting.values())

    def finish(self) -> None:
        """Wait for all results."""
        while self._waiting:
            wait_for_first(self._client, self._waiting)
            self.note()

    def note(self) -> None:
        """Write the results that are there by now."""
        for future in [future for future in self._waiting if future.done()]:
            entry, key, what, message_of = self._waiting.pop(future)
            try:
                (entry[key],) = gather(self._client, [future], what)
            except Exception as error:  # whatever it is, it must not cost the training
                self.say(f"round {entry['round']} could not be evaluated: {error}")
                continue
            self.say(f"round {entry['round']}: {message_of(entry[key])}")

    def say(self, message: str) -> None:
        """Send a message."""
        self._listener(Progress("evaluate", 0, 0, "", message=message))


class TrainingEvaluation:
    """Evaluates the vectors of rounds.

    Parameters
    ----------
    client
        The cluster that has the model.
    vocabulary
        Its words.
    sets
        The sets to evaluate on.
    storage_options
        Options for fsspec.

    Raises
    ------
    InputError
        If a set cannot be read: better now than after hours of training.
    """

    def __init__(
        self, client: Client, vocabulary: StoredVocabulary, sets: EvaluationSets, storage_options: Mapping[str, Any]
    ) -> None:
        self._client = client
        evaluate(_NO_VECTORS, **sets, storage_options=storage_options)
        self._vocabulary, self._sets, self._storage_options = vocabulary, sets, Options(storage_options)

    def measure(self, entry: HistoryEntry, rows: ModelRows | None, measurements: Measurements, *, needed: bool) -> None:
        """Submit the evaluation of a round; leave it out if there are too many, unless it is needed."""
        number, join = entry["round"], None if rows is None else rows["input"].join
        if rows is None or join is None:
            measurements.say(f"round {number} is not evaluated: the cluster's memory does not hold the model")
            return
        if measurements.pending(_SCORES) >= MOST_PENDING and not needed:
            measurements.say(f"round {number} is not evaluated: those before it are still being evaluated")
            return
        arguments = self._vocabulary, self._sets, self._storage_options, join, list(rows["input"].parts)
        key = f"evaluate-{number}-{uuid.uuid4().hex[:8]}"
        future = self._client.submit(_evaluate, *arguments, key=key, retries=1)
        measurements.add(future, entry, _SCORES, "The evaluation", _message)


def _message(scores: Mapping[str, float | None]) -> str:
    return ", ".join(f"{name} {'undefined' if score is None else f'{score:.3f}'}" for name, score in scores.items())


def _evaluate(
    vocabulary: StoredVocabulary,
    sets: EvaluationSets,
    storage_options: Options,
    join: Callable[..., Any],
    parts: list[Any],
) -> dict[str, float | None]:
    """Task: put the input rows together and evaluate them; return the score of each set."""
    vectors = Vectors(vocabulary.load(), join(*parts))
    return evaluate(vectors, **sets, analogy_methods=("3cosadd",), storage_options=storage_options).scores()
