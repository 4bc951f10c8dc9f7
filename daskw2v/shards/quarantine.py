"""Blocks that cannot be read, or kill whoever reads them: which of them are left out, and which stop the run."""

from collections.abc import Mapping

from daskw2v.corpus.sources import Block
from daskw2v.errors import Daskw2vError, InputError, TrainingError
from daskw2v.progress import Listener, Progress
from daskw2v.shards.layout import BadBlock
from daskw2v.wording import counted


class Quarantine:
    """Judges blocks that failed.

    Parameters
    ----------
    blocks
        All blocks by their keys.
    most
        Blocks that may be left out.
    listener
        Is told of each that is.
    """

    def __init__(self, blocks: Mapping[str, Block], most: int, listener: Listener) -> None:
        self._blocks, self._most, self._listener = blocks, most, listener
        self.suspects: list[str] = []
        self.bad: dict[str, BadBlock] = {}

    def suspect(self, key: str, error: Daskw2vError) -> bool:
        """Excuse a block that killed workers, for the time being; leave out one that cannot be read."""
        if self._most and isinstance(error, TrainingError):
            self.suspects.append(key)
            return True
        return self.condemn(key, error)

    def condemn(self, key: str, error: Daskw2vError) -> bool:
        """Leave a block out, if it may be."""
        if len(self.bad) == self._most or not isinstance(error, InputError | TrainingError):
            return False
        block = self._blocks[key]
        self.bad[key] = BadBlock(block.source.url, block.start, block.stop, error.problem)
        message = f"{counted(len(self.bad), 'bad block')} of at most {self._most} left out: {error.problem}"
        self._listener(Progress("encode", 0, 0, "bytes", message=message))
        return True
