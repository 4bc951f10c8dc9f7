"""The loss of each word in each step of strategy `columns`, stored beside the model for studies of training."""

from collections.abc import Sequence

import numpy as np
import zarr
from distributed import Client, Future

from daskw2v.cluster.waiting import gather
from daskw2v.models.stored.store import create_part
from daskw2v.store.arrays import StoredArray, create_array, finish_arrays, open_array, write_rows
from daskw2v.store.checksums import ChunkChecksums
from daskw2v.store.durability import durable
from daskw2v.store.stage import groups_exist
from daskw2v.store.storage import Store
from daskw2v.training.columns.step_schedule import ColumnRound, ColumnRounds
from daskw2v.types import Float32Array

FOLDER, LOSS, COLUMNS = "losses", "loss", "columns"
_PUBLISHED = f"{FOLDER}/{LOSS}"  # in a model


class WordLosses:
    """Writes the array `loss`, shape (steps, V) float32: a word's loss in a step, divided by the step's columns.

    It is the loss of the word's input row; 0 for a word without contexts. The array's attribute `columns` is the number
    of columns trained by the end of each step, over all epochs. A chunk is a round, which one task writes.

    Parameters
    ----------
    client
        The cluster.
    folder
        The run's folder.
    rounds
        The rounds of the run.
    n_words
        Number of words of the vocabulary (V).
    session
        Part of the keys of this client's tasks, unlike any other client's.
    """

    def __init__(self, client: Client, folder: Store, rounds: ColumnRounds, n_words: int, session: str) -> None:
        self._client, self._folder, self._session = client, folder / FOLDER, session
        self._rounds, self._n_words = rounds, n_words
        self._writes: list[Future] = []
        self._n_kept = len(rounds)
        if not groups_exist(self._folder, [LOSS]):  # else a run goes on from its checkpoint
            self._declare(self._folder.create_group(), rounds.ends)

    def has_rounds(self, n_rounds: int) -> bool:
        """Return whether losses of the first `n_rounds` rounds were written: a run may have begun without them."""
        starts = [self._rounds[number].steps[0].number for number in range(n_rounds)]
        array = _open(self._folder, writable=True)  # so that a missing chunk reads as NaN
        return not any(np.isnan(array[start, 0]) for start in starts)

    def keep(self, current: ColumnRound, by_step: Sequence[Sequence[Future]]) -> None:
        """Submit the writing of a round's losses, from their futures: by step, or all steps together, then by part.

        A future's losses have the shape (steps, words of the part).
        """
        key = f"losses-{self._session}-{current.number}"
        steps = current.steps[0].number, [step.last - step.first for step in current.steps]
        self._n_kept = current.number + 1
        self._writes.append(self._client.submit(_write, self._folder, *steps, *by_step, key=key, retries=2))

    def finish(self) -> None:
        """Wait until the losses of all rounds that were kept are written."""
        gather(self._client, self._writes, "Writing losses")
        self._writes.clear()

    def publish(self, model: Store) -> None:
        """Copy the losses of the rounds that were trained into a model's folder."""
        self.finish()
        steps = [self._rounds[number].steps for number in range(self._n_kept)]
        starts = [round_steps[0].number for round_steps in steps]
        self._declare(create_part(model, FOLDER), self._rounds.ends[: steps[-1][-1].number + 1])
        copies = [
            self._client.submit(_copy, self._folder, model, start, key=f"copy-{self._session}-{start}", retries=2)
            for start in starts
        ]
        finish_arrays(model.open_group(writable=True), gather(self._client, copies, "Writing losses"))

    def _declare(self, group: zarr.Group, ends: Sequence[int]) -> None:
        """Create the array of losses in a group; `ends` has the number of columns trained by the end of each step."""
        shape, steps = (len(ends), self._n_words), self._rounds.steps_per_round
        create_array(group, LOSS, shape, np.float32, steps, attributes={COLUMNS: ends}, fill_value=float("nan"))


def _open(store: Store, name: str = LOSS, *, writable: bool = False) -> StoredArray:
    """Return the array of losses in a folder; `name` is its path there."""
    return open_array(store.open_group(writable=writable), name)


@durable()
def _write(folder: Store, start: int, columns: Sequence[int], *by_step: Sequence[Float32Array]) -> None:
    """Task: write a round's losses, divided by the columns of their step, from row `start` on.

    `columns` is the number of columns of each step; `by_step` are the results of the futures of `WordLosses.keep`.
    """
    losses: Float32Array = np.concatenate([np.concatenate(parts, axis=1) for parts in by_step])
    write_rows(_open(folder, writable=True), start, losses / np.array(columns, np.float32)[:, None])


@durable()
def _copy(source: Store, model: Store, start: int) -> ChunkChecksums:
    """Task: copy a round's losses, from row `start` on, to a model; return the files' checksums."""
    array, copy = _open(source), _open(model, _PUBLISHED, writable=True)
    write_rows(copy, start, array[start : start + array.chunks[0]])
    return copy.chunk_checksums()


def read_losses(model: Store) -> tuple[list[int], Float32Array]:
    """Return the number of columns trained by the end of each step, and the array `loss`, as in `WordLosses`.

    Raises
    ------
    StoreError
        If the model was trained without Resources(word_losses=True).
    """
    array = _open(model, _PUBLISHED)
    return list(array.attrs[COLUMNS]), array[...]
