"""What the stages of sequences have in common: a folder named by what was asked for, held by one process at a time."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from daskw2v.corpus.sources import Source
from daskw2v.lease import hold
from daskw2v.progress import Listener, saying
from daskw2v.shards.layout import digest
from daskw2v.storage import Store


def contents_of(sources: Sequence[Source]) -> list[Any]:
    """Return what stands for the content of files, as JSON values."""
    return [[source.url, source.size, source.version, source.format] for source in sources]


@contextmanager
def stage(work: Store, kind: str, asked: Any, listener: Listener) -> Iterator[tuple[Store, Listener]]:
    """Hold the folder of a result, and tell the listener who else does.

    Parameters
    ----------
    work
        The work directory.
    kind
        What is made: its folder's name.
    asked
        JSON values: all that changes the result.
    listener
        Is told whom it waits for.

    Yields
    ------
    tuple
        The folder, and the listener, which stops this process where it has lost the folder to another.
    """
    home = work / kind / digest(asked)
    with hold(work, f"{kind}-{home.name}", home.url, waiting=saying(listener, kind, "files")) as lease:
        yield home, lease.guarding(listener)
