"""The pieces of a session on a machine with a GPU, in order of worth."""

from typing import NamedTuple


class Piece(NamedTuple):
    """A process with a time limit.

    Parameters
    ----------
    name
        What it is called for.
    what
        What it tells.
    usual, most
        Seconds that it is expected to take, by estimate, and after which it is stopped.
    command
        What follows `python -m`. Every piece understands `--rows FILE`, to which it adds each row when it is known.
    tiny
        What follows in a dry run besides.
    cached
        Whether it understands `--cache FOLDER`, and so goes on where it was stopped.
    simulated
        Whether a dry run has Numba's simulator in place of a GPU; otherwise it has none.
    """

    name: str
    what: str
    usual: int
    most: int
    command: tuple[str, ...]
    tiny: tuple[str, ...] = ()
    cached: bool = False
    simulated: bool = True


MOST = 540  # seconds of any piece: some machines are lent for commands of ten minutes
_CUDA = ("benchmarks.cuda", "--tables")
_CHECKS = "benchmarks.gpu.checks"
_ONE = ("--tiny", "--kernels", "sgns")
_TEXT = ("--parts", "0.075", "--times", "1")
_DRAWN = ("--vocabularies", "40", "--tokens", "24", "--times", "1")
_WIKI = ("--parts", "0", "--vocabularies")
_TRAINED = ("--parts", "1", "--epochs", "1")

PIECES = {
    piece.name: piece
    for piece in (
        Piece("machine", "what is there: GPU, driver, packages, programs, text", 20, 60, (_CHECKS, "machine")),
        Piece("tests", "tests marked gpu", 400, MOST, (_CHECKS, "tests"), simulated=False),
        Piece("memcheck", "memory errors, by compute-sanitizer", 180, 360, (_CHECKS, "memcheck"), _ONE),
        Piece("racecheck", "races in shared memory, by compute-sanitizer", 180, 360, (_CHECKS, "racecheck"), _ONE),
        Piece(
            "correctness", "each kernel on one warp against float64", 120, 300, (*_CUDA, "correctness"),
            ("--dims", "8", "--words", "6"),
        ),
        Piece(
            "speed", "words/s on Wikipedia: kernels alone, and whole tasks", 240, MOST,
            (*_CUDA, "speed", "batching", "--vocabularies"), _TEXT,
        ),
        Piece(
            "quality", "vectors of 100 MB by warps in flight, one seed", 330, MOST,
            (*_CUDA, "quality", "--seeds", "1"), (*_TRAINED, "--fewest", "1056", *_DRAWN), cached=True,
        ),
        Piece(
            "full_w2v", "FULL-W2V's shape of work, beside paper 004", 240, MOST,
            ("benchmarks.papers", "004", "--seeds", "1", "--epochs", "1", "--tools"),
            ("--parts", "1", "--time-parts", "0.1", "--times", "1", "--threads", "1"), cached=True,
        ),
        Piece(
            "speed_drawn", "words/s on drawn texts of a small vocabulary", 240, MOST,
            (*_CUDA, "speed", *_WIKI, "71000"), _DRAWN,
        ),
        Piece(
            "speed_large", "words/s on drawn texts of a large vocabulary", 300, MOST,
            (*_CUDA, "speed", *_WIKI, "555514"), _DRAWN,
        ),
        Piece("synccheck", "wrong barriers, by compute-sanitizer", 180, 360, (_CHECKS, "synccheck"), _ONE),
        Piece(
            "quality_seeds", "the same as quality, of three seeds", 500, MOST, (*_CUDA, "quality"),
            (*_TRAINED, "--fewest", "1056", "--seeds", "1", *_DRAWN), cached=True,
        ),
    )
}  # fmt: skip
