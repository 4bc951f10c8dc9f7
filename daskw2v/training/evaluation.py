"""Evaluation while a model trains: tasks on the cluster, for which training does not wait."""

import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from distributed import Client, Future

from daskw2v.cluster import first_done, gather
from daskw2v.evaluation import evaluate
from daskw2v.models.vectors import Vectors
from daskw2v.progress import Listener, Progress
from daskw2v.store.credentials import Options
from daskw2v.training.strategy import InputRows
from daskw2v.vocabulary.count import StoredVocabulary
from daskw2v.vocabulary.vocabulary import Vocabulary

_NOTHING = Vectors(Vocabulary.from_words([], []), np.zeros((0, 1), np.float32))
_AT_ONCE = 2  # evaluations that may wait or run: each keeps the rows of its round in memory

EvaluationSets = Mapping[str, Any]  # URLs by kind, as `evaluate` takes them


class TrainingEvaluation:
    """Evaluates the vectors of some rounds, as an `EvaluationCallback`.

    Parameters
    ----------
    client
        The cluster that has the model.
    vocabulary
        Its words.
    sets
        What to evaluate on.
    every
        Evaluate every n-th round or pass, and the last one; None for the last one only.
    total
        Corpus positions over all epochs.
    listener
        Is told the scores.
    storage_options
        Options for fsspec.

    Raises
    ------
    InputError
        If a set cannot be read: better now than after hours of training.
    """

    def __init__(
        self,
        client: Client,
        vocabulary: StoredVocabulary,
        sets: EvaluationSets,
        every: int | None,
        total: int,
        listener: Listener,
        storage_options: Mapping[str, Any],
    ) -> None:
        self._client, self._listener = client, listener
        evaluate(_NOTHING, **sets, storage_options=storage_options)
        self._vocabulary, self._sets, self._storage_options = vocabulary, sets, Options(storage_options)
        self._every, self._total = every, total
        self._waiting: dict[Future, dict[str, Any]] = {}

    def __call__(self, entry: dict[str, Any], rows: InputRows | None) -> None:
        """Submit the evaluation of a round, if it is one of those; note the scores that are there by now."""
        self._note()
        if not self._sets:
            return
        number, last = entry["round"], entry["progress"] >= self._total
        if not last and not (self._every and (number + 1) % self._every == 0):
            return
        if rows is None:
            self._say(f"round {number} is not evaluated: the cluster's memory does not hold the model")
            return
        if len(self._waiting) >= _AT_ONCE and not last:
            self._say(f"round {number} is not evaluated: those before it are still being evaluated")
            return
        key = f"evaluate-{number}-{uuid.uuid4().hex[:8]}"
        what = (self._vocabulary, self._sets, self._storage_options)
        future = self._client.submit(_evaluate, *what, rows.join, list(rows.parts), key=key, retries=1)
        self._waiting[future] = entry

    def finish(self) -> None:
        """Wait for what is still being evaluated."""
        while self._waiting:
            first_done(self._client, self._waiting)
            self._note()

    def _note(self) -> None:
        """Write the scores that are there by now into the entries of their rounds."""
        for future in [future for future in self._waiting if future.done()]:
            entry = self._waiting.pop(future)
            try:
                (entry["scores"],) = gather(self._client, [future], "The evaluation")
            except Exception as error:  # whatever it is, it must not cost the training
                self._say(f"round {entry['round']} could not be evaluated: {error}")
                continue
            scores = ", ".join(f"{name} {_shown(score)}" for name, score in entry["scores"].items())
            self._say(f"round {entry['round']}: {scores}")

    def _say(self, message: str) -> None:
        self._listener(Progress("evaluate", 0, 0, "", message=message))


def _shown(score: float | None) -> str:
    return "undefined" if score is None else f"{score:.3f}"


def _evaluate(
    vocabulary: StoredVocabulary,
    sets: EvaluationSets,
    storage_options: dict[str, Any],
    join: Callable[..., Any],
    parts: Sequence[Any],
) -> dict[str, float | None]:
    """Task: put the input rows together and evaluate them; return the score of each set."""
    vectors = Vectors(vocabulary.load(), join(*parts))
    return evaluate(vectors, **sets, analogy_methods=("3cosadd",), storage_options=storage_options).scores()
