"""The pieces of a session on a machine with a GPU: what fewest records know comes first.

PIECES are in order of worth. A record of a session has a table "Pieces" of how each ended: those that were never done
come first, those that were done in most records last. So the order changes with each record.
"""

from typing import NamedTuple

from benchmarks.records import Record, names


class Piece(NamedTuple):
    """A process with a time limit.

    Parameters
    ----------
    name, what
        What it is called for, and what it tells.
    usual
        Seconds that it is expected to take, its compilation included.
    command, tiny
        What follows `python -m`, and in a dry run besides. It understands `--rows FILE`: each row is added at once.
    cached
        Whether it understands `--cache FOLDER`, and so goes on where it was stopped.
    simulated
        Whether a dry run has Numba's simulator in place of a GPU; otherwise it has none.
    """

    name: str
    what: str
    usual: int
    command: tuple[str, ...]
    tiny: tuple[str, ...] = ()
    cached: bool = False
    simulated: bool = True

    @property
    def most(self) -> int:
        """Seconds after which it is stopped."""
        return min(MOST, 2 * self.usual + 60)


DONE, FAILED, CUT, BROKEN, UNTRIED = "done", "failed", "cut", "broken off", "not tried"
TABLE = "Pieces"
MOST = 540  # seconds of any piece: some machines are lent for commands of ten minutes
_CUDA = ("benchmarks.cuda", "--tables")
_CHECKS = "benchmarks.gpu.checks"
_NEW = "text_on_cuda or replicas_on_cuda or network"  # tests that never ran on a GPU
_ONE = ("--size", "8", "--parts", "1", "--ways", "averaging")
_TEXT = ("--parts", "0.075", "--times", "1")
_DRAWN = ("--vocabularies", "40", "--tokens", "24", "--times", "1")
_WAYS = ("--size", "8", "--parts", "1", "--epochs", "1", "--times", "1", "--ways", "averaging, 2 replicas")

PIECES = {
    piece.name: piece
    for piece in (
        Piece("machine", "what is there: GPU, driver, packages, programs, text", 20, (_CHECKS, "machine")),
        Piece("tests_new", "tests of cut text, replicas, subwords", 120, (_CHECKS, "tests", "--only", _NEW),
              simulated=False),
        Piece("trainings", "whole trainings: rows that stay, merges, replicas, rotation, columns; host ms of a piece",
              300, ("benchmarks.gpu.trainings",), _WAYS),
        Piece("batching", "text that is cut on the GPU, words/s", 60, (*_CUDA, "batching", "--vocabularies"), _TEXT),
        Piece("memcheck_runs", "memory errors of whole trainings", 200, (_CHECKS, "memcheck"), _ONE),
        Piece("racecheck_runs", "races of whole trainings", 200, (_CHECKS, "racecheck"), _ONE),
        Piece("speed_large", "words/s on drawn texts of a large vocabulary", 200,
              (*_CUDA, "speed", "--times", "3", "--parts", "0", "--vocabularies", "555514"), _DRAWN),
        Piece("synccheck_runs", "wrong barriers of whole trainings", 200, (_CHECKS, "synccheck"), _ONE),
        Piece("full_w2v", "FULL-W2V's shape of work, beside paper 004", 240,
              ("benchmarks.papers", "004", "--seeds", "1", "--epochs", "1", "--tools"),
              ("--parts", "1", "--time-parts", "0.1", "--times", "1", "--threads", "1"), cached=True),
        Piece("speed", "words/s on Wikipedia: kernels alone, and whole tasks", 240,
              (*_CUDA, "speed", "--vocabularies"), _TEXT),
        Piece("quality", "vectors of 100 MB by warps in flight, three seeds", 500, (*_CUDA, "quality"),
              ("--parts", "1", "--epochs", "1", "--fewest", "1056", "--seeds", "1", *_DRAWN), cached=True),
        Piece("tests", "tests of kernels", 180, (_CHECKS, "tests", "--only", f"not ({_NEW})"), simulated=False),
        Piece("correctness", "each kernel on one warp against float64", 120, (*_CUDA, "correctness"),
              ("--dims", "8", "--words", "6")),
    )
}  # fmt: skip


def measured() -> dict[str, list[str]]:
    """Return the days of the records in which each piece was done."""
    days: dict[str, list[str]] = {name: [] for name in PIECES}
    for record in map(Record.read, names()):
        for table in record.tables:
            ended = table["rows"].items() if table["title"] == TABLE else ()
            for name, cells in ended:
                if name in days and cells[table["columns"].index("state")] == DONE:
                    days[name].append(record.date)
    return days


def in_order(days: dict[str, list[str]]) -> list[Piece]:
    """Return all pieces: what was measured seldom first; of those, what is worth most."""
    return sorted(PIECES.values(), key=lambda piece: len(days[piece.name]))
