"""Words/s that a kernel over text trains at most, by four bounds, from what it was compiled to.

* **issue**: the instructions of a word, as they are carried out, of four a cycle and multiprocessor.
* **L2**: the bytes of rows that a word reads and adds. An addition counts twice, since it reads and writes, as Nsight
  Compute counts it; and eight times where floats are added one by one, by four instructions of which each touches all
  sectors of a row (assumed). The hottest rows lie in few slices of the cache, and the busiest slice ends last.
* **DRAM**: the rows that L2 does not hold, read and written back. It holds those that were used last (Che, Tung and
  Wang 2002, "Hierarchical Web Caching Systems", section III), in half of its bytes: each of its two halves keeps copies
  of what its multiprocessors read.
* **latency**: the warps that there is room for at a time, by the cycles that one alone takes for a word (`chain`).

Rows are those that a word of a Zipf law touches on average (`Objective.touched`); instructions and cycles are those of
some 160 words of a text of 71,000 distinct ones: paths of larger trees are longer. Three constants are calibrated on an
H100 and an H200 (`RESULTS.md`). FROM_L2 and FROM_DRAM are what `ceilings` reached of the published rates. CHAIN alone
comes from words/s: those of `sgns` with one warp a multiprocessor, which took so many times the cycles of `chain`.
"""

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.cuda import sass
from benchmarks.cuda.cards import DRAM_CYCLES, L2_CYCLES, Card
from benchmarks.cuda.chain import cycles_of
from benchmarks.cuda.kernels import TEXT, entry_of, machine_code, text_case, text_counts
from daskw2v.config.params import Params
from daskw2v.kernels.simd import padded
from daskw2v.objectives.registry import OBJECTIVES
from daskw2v.sampling.segments import keep_thresholds
from tests.support.cuda.cases import Windows, rule_of
from tests.support.cuda.compiling import Setting, compiled
from tests.support.cuda.emulated import Kernel
from tests.support.cuda.occupancy import MULTIPROCESSORS

CHAIN, FROM_L2, FROM_DRAM = 1.3, 0.5, 0.65
LINE = 128  # bytes of the L2 cache
HOT = 4096  # rows that are not spread evenly over its slices
HELD = 0.5  # of its bytes

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


class Profile(NamedTuple):
    """What a kernel was compiled to.

    Parameters
    ----------
    registers, room
        Of a thread; and how many warps a multiprocessor has room for.
    instructions
        Of a word; those of PTX where there is no disassembler.
    code, done
        Its machine code, and how often a word carries out each line of it; none without a disassembler.
    """

    registers: int
    room: int
    instructions: float
    code: list[sass.Instruction]
    done: list[float]


class Rows(NamedTuple):
    """How often a word touches each row of both tables, shape (rows,); and the rows that it reads once more."""

    rates: Floats
    again: float

    @property
    def touched(self) -> float:
        return float(self.rates.sum())

    def through_l2(self, card: Card) -> float:
        """Return the rows that L2 passes on for a word."""
        return self.touched * (1 + (2 if card.capability >= (9, 0) else 8)) + self.again

    def absent(self, card: Card, length: int) -> float:
        """Return the rows of a word, of `length` bytes each, that come from memory."""
        return missed(self.rates, HELD * card.l2 / length)


class Bounds(NamedTuple):
    """Words that are trained in a second at most; infinity where a bound does not hold, or is not known."""

    issue: float
    L2: float
    DRAM: float
    latency: float

    @property
    def limit(self) -> str:
        """The name of the smallest."""
        return min(self._fields, key=lambda name: float(getattr(self, name)))


@cache
def profile_of(params: Params, capability: tuple[int, int]) -> Profile:
    """Compile a kernel, and count what it does with a text."""
    setting = Setting(params.vector_size, capability, params.window, params.negative)
    code, program = compiled(params.objective, setting), sass.disassembler()
    kernel, entry = Kernel(code.ptx, code.ring), entry_of(code)
    case = text_case(params, params.sample, int(TEXT / kept_share(params, text_counts())))
    _, done = case.emulated(kernel)
    each = (done / len(case.segment.tokens)).tolist()
    room = MULTIPROCESSORS[capability].room(code.registers, code.shared)
    if program is None:
        return Profile(code.registers, room, sum(each), [], [])
    functions = machine_code(kernel, setting, program)
    instructions = sass.carried_out(functions, entry, each)
    return Profile(code.registers, room, instructions, sass.warm(functions[entry]), each)


def kept_share(params: Params, counts: Integers) -> float:
    """Return the share of a text that subsampling leaves."""
    return float(counts @ (keep_thresholds(counts, params.sample) / 2.0**32) / counts.sum())


def rows_of(params: Params, counts: Integers) -> Rows:
    """Return the rows of a word: of contexts its own once where there is a ring, else those of its whole window."""
    objective: Any = OBJECTIVES[params.objective]
    prepared = objective.prepare(params, counts)
    waiting = Windows(params, None, 0, 0, [], prepared, []).waiting()  # type: ignore[arg-type]
    contexts, targets = objective.touched(prepared, counts).values()
    targets[: waiting["top"]] = 1 / waiting["flush"]
    if waiting["ring"]:
        return Rows(np.concatenate([contexts / contexts.sum(), targets]), 0.0)
    again = float(contexts.sum()) if rule_of(params.objective).as_one else 0.0  # CBOW sums contexts, and moves them
    return Rows(np.concatenate([contexts, targets]), again)


def busiest(rates: Floats, lines: int, slices: int, draws: int = 16) -> float:
    """Return how much more the busiest of some slices does than the average one; rows have `lines` in any of them."""
    hottest = -np.partition(-rates, min(HOT, len(rates)) - 1)[:HOT]
    even, rng = (rates.sum() - hottest.sum()) / slices, np.random.default_rng(1)
    weights = np.repeat(hottest / lines, lines)
    loads = [np.bincount(rng.integers(0, slices, len(weights)), weights).max() for _ in range(draws)]
    return float((even + np.mean(loads)) * slices / rates.sum())


def missed(rates: Floats, fitting: float) -> float:
    """Return how many rows of a word a cache has forgotten that holds the `fitting` rows which were used last."""
    if len(rates) <= fitting:
        return 0.0
    low, high = 0.0, 1.0  # words after which a row is forgotten

    def held(words: float) -> float:
        return float(-np.expm1(-rates * words).sum())

    while held(high) < fitting and high < 1e12:
        low, high = high, 2 * high
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if held(middle) < fitting else (low, middle)
    return float(rates @ np.exp(-rates * high))


def bounds_of(card: Card, params: Params, profile: Profile, rows: Rows, launched: int | None = None) -> Bounds:
    """Return the bounds on a card, with so many warps launched for each multiprocessor, or all that it has room for."""
    length, launched = 4 * padded(params.vector_size), launched or profile.room
    at_a_time = card.multiprocessors * launched / -(-launched // profile.room)  # the last warps may be few
    absent, moved = rows.absent(card, length), length * rows.through_l2(card)
    latency = L2_CYCLES + (DRAM_CYCLES - L2_CYCLES) * absent / rows.touched
    cycles = CHAIN * cycles_of(profile.code, profile.done, latency)
    return Bounds(
        card.issued / profile.instructions,
        FROM_L2 * card.l2_rate / (moved * busiest(rows.rates, -(-length // LINE), card.slices)),
        FROM_DRAM * card.dram / (2 * length * absent) if absent else math.inf,
        at_a_time * card.clock / cycles if cycles else math.inf,
    )
