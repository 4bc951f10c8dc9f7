"""Evaluation while a model trains, on sets of words with human judgements."""

import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from distributed import Client

from daskw2v.evaluation import evaluate
from daskw2v.models.queries.vectors import Vectors
from daskw2v.store.urls import Options
from daskw2v.training.loop.strategy import ModelRows
from daskw2v.training.watch.measurements import HistoryEntry, Measurements
from daskw2v.vocabulary.count import StoredVocabulary
from daskw2v.vocabulary.vocabulary import Vocabulary

_NOTHING = Vectors(Vocabulary.from_words([], []), np.zeros((0, 1), np.float32))
MOST_PENDING = 2  # evaluations that wait or run: each keeps the rows of its round in memory
_SCORES = "scores"  # key in the entry of a round

EvaluationSets = Mapping[str, Any]  # URLs by kind, as `evaluate` takes them


class TrainingEvaluation:
    """Evaluates the vectors of rounds.

    Parameters
    ----------
    client
        The cluster that has the model.
    vocabulary
        Its words.
    sets
        What to evaluate on.
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
        storage_options: Mapping[str, Any],
    ) -> None:
        self._client = client
        evaluate(_NOTHING, **sets, storage_options=storage_options)
        self._vocabulary, self._sets, self._storage_options = vocabulary, sets, Options(storage_options)

    def measure(self, entry: HistoryEntry, rows: ModelRows | None, measurements: Measurements, *, needed: bool) -> None:
        """Submit the evaluation of a round; leave it out if there are too many, unless it is needed."""
        number = entry["round"]
        if rows is None or rows["input"].join is None:
            measurements.say(f"round {number} is not evaluated: the cluster's memory does not hold the model")
            return
        if measurements.pending(_SCORES) >= MOST_PENDING and not needed:
            measurements.say(f"round {number} is not evaluated: those before it are still being evaluated")
            return
        key = f"evaluate-{number}-{uuid.uuid4().hex[:8]}"
        what = (self._vocabulary, self._sets, self._storage_options)
        join, parts = rows["input"].join, list(rows["input"].parts)
        future = self._client.submit(_evaluate, *what, join, parts, key=key, retries=1)
        measurements.add(future, entry, _SCORES, "The evaluation", _told)


def _told(scores: Mapping[str, float | None]) -> str:
    return ", ".join(f"{name} {'undefined' if score is None else f'{score:.3f}'}" for name, score in scores.items())


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
