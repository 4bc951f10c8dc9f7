"""Blocks that cannot be read or kill their workers: whether they are left out or stop the run."""

from collections.abc import Mapping

from daskw2v.corpus.files import TextBlock
from daskw2v.errors import Daskw2vError, InputError, TrainingError, counted
from daskw2v.progress import Listener, Progress
from daskw2v.shards.layout import BadBlock


class Quarantine:
    """Decides about blocks that failed.

    Parameters
    ----------
    blocks
        All blocks by key.
    most
        Number of blocks that may be left out.
    listener
        Receives a message for each of them.
    """

    def __init__(self, blocks: Mapping[str, TextBlock], most: int, listener: Listener) -> None:
        self._blocks, self._most, self._listener = blocks, most, listener
        self.suspects: list[str] = []
        self.bad: dict[str, BadBlock] = {}

    def suspect(self, key: str, error: Daskw2vError) -> bool:
        """Excuse a block that killed workers for now, as a suspect; leave out a block that cannot be read."""
        if self._most and isinstance(error, TrainingError):
            self.suspects.append(key)
            return True
        return self.condemn(key, error)

    def condemn(self, key: str, error: Daskw2vError) -> bool:
        """Leave a block out if that is allowed; return whether it is."""
        if len(self.bad) == self._most or not isinstance(error, InputError | TrainingError):
            return False
        block = self._blocks[key]
        self.bad[key] = BadBlock(block.source.url, block.start, block.stop, error.problem)
        message = f"{counted(len(self.bad), 'bad block')} of at most {self._most} left out: {error.problem}"
        self._listener(Progress("encode", 0, 0, "bytes", message=message))
        return True
