"""Batches that cannot be read or kill their workers: which of their blocks are left out, or whether the run stops."""

from collections.abc import Iterable, Iterator, Mapping

from daskw2v.corpus.batches import Batch
from daskw2v.errors import Daskw2vError, InputError, TrainingError, counted
from daskw2v.progress import Listener, Progress
from daskw2v.shards.layout import BadBlock


class Quarantine:
    """Decides about batches that failed. One of several blocks is split, until the bad block is alone.

    Parameters
    ----------
    batches
        All batches by key.
    most
        Number of blocks that may be left out.
    listener
        Receives a message for each of them.
    """

    def __init__(self, batches: Mapping[str, Batch], most: int, listener: Listener) -> None:
        self._batches, self._most, self._listener = dict(batches), most, listener
        self._suspects: list[str] = []
        self._split: dict[str, list[Batch]] = {}
        self.bad: dict[str, BadBlock] = {}

    def suspect(self, key: str, error: Daskw2vError) -> bool:
        """Excuse a batch that killed workers for now, as a suspect; condemn one that cannot be read."""
        if self._most and isinstance(error, TrainingError):
            self._suspects.append(key)
            return True
        return self.condemn(key, error)

    def condemn(self, key: str, error: Daskw2vError) -> bool:
        """Split a batch, or leave a block out, if that is allowed; return whether it is."""
        if len(self.bad) == self._most or not isinstance(error, InputError | TrainingError):
            return False
        batch = self._batches[key]
        if len(batch.blocks) > 1:
            self._split[key] = batch.split()
            self._batches |= {part.key: part for part in self._split[key]}
            return True
        (block,) = batch.blocks
        self.bad[key] = BadBlock(block.source.url, block.start, block.stop, error.problem)
        message = f"{counted(len(self.bad), 'bad block')} of at most {self._most} left out: {error.problem}"
        self._listener(Progress("encode", 0, 0, "bytes", message=message))
        return True

    def take_suspects(self) -> list[str]:
        """Return the keys of batches that were suspected since the last call."""
        taken, self._suspects = self._suspects, []
        return taken

    def parts_of(self, keys: Iterable[str]) -> dict[str, Batch]:
        """Return by key what the batches of these keys were split into; nothing of those that were not."""
        return {part.key: part for key in keys for part in self._split.get(key, ())}

    def good(self, batch: Batch) -> Iterator[Batch]:
        """Yield a batch, or those that it was split into, without bad blocks."""
        if batch.key in self._split:
            for part in self._split[batch.key]:
                yield from self.good(part)
        elif batch.key not in self.bad:
            yield batch
