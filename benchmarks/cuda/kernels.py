"""What kernels are compiled to, and how many instructions a word takes: no GPU is needed.

Registers, spills and memory are the linker's words; how many warps a multiprocessor has room for follows from them and
from the limits of each generation (`tests.support.cuda.occupancy`). Instructions are counted as they are carried out: a
warp trains a text by the kernel's PTX in NumPy (`emulated`), so that each of its instructions has a number of times;
the linker is told that each stands on a line of its own, so that the disassembler says which of them each instruction
of the machine code (SASS) was made of. Where nvdisasm is not installed (pip install nvidia-cuda-nvdisasm), that of PTX
alone is known.

What a GPU can do at most is estimated from these: an H200 of 132 multiprocessors at 1.755 GHz that issue four
instructions a cycle each, and 5.5 TB/s from its L2 cache. No latency, no bank conflict, no contended row is in them.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from benchmarks.cuda import sass
from benchmarks.cuda.bench import Bench
from daskw2v.config.params import Params
from daskw2v.kernels.simd import padded
from daskw2v.objectives.base import Columns
from daskw2v.objectives.noise import BATCH
from daskw2v.objectives.registry import OBJECTIVES
from daskw2v.objectives.sg_hs.buckets.cpu import cut_steps
from daskw2v.objectives.sg_hs.buckets.reference import paths_of
from daskw2v.objectives.tree import trees_of
from daskw2v.sampling.hierarchy import word_table
from daskw2v.sampling.pairs import pack, unpack
from daskw2v.sampling.skipgrams import Bucket
from tests.support.cuda.cases import KEY, Matrix, Pairs, PathPairs, Windows
from tests.support.cuda.compiling import Code, Setting, compiled, linked
from tests.support.cuda.emulated import Kernel
from tests.support.cuda.occupancy import MULTIPROCESSORS
from tests.support.cuda.traffic import rows_of
from tests.support.cuda.trainings import params_of
from tests.support.zipf import zipf_counts, zipf_segment

DIMS = (100, 128)
ISSUED = 132 * 4 * 1.755e9  # instructions of warps a second, of an H200
FROM_L2 = 5.5e12  # bytes a second, of an H200, assumed
TEXT = 160  # words that are trained to count instructions
VOCABULARY, TOKENS = 71_000, 17_000_000  # of 100 MB of Wikipedia: how deep the tree is
UNITS = {
    "sgns, buckets": "pair",
    "sg_hs, buckets": "pair",
    "context_matrix": "column of a row",
    "context_matrix, sgd": "column of a row",
}


class Work(NamedTuple):
    """What a unit takes, a word where UNITS has no other: instructions of PTX and of SASS, and bytes of rows."""

    ptx: float
    sass: float | None
    bytes: float | None


def work_of(name: str, setting: Setting, program: str | None) -> Work:
    """Count what a unit takes, by a text of a few; the program is the disassembler."""
    code = compiled(name, setting)
    kernel, params = Kernel(code.ptx, code.ring), params_of(name, setting)
    case, n, taken = _case(name, params)
    _, done = case.emulated(kernel)
    machine = None
    if program:
        functions = machine_code(kernel, setting, program)
        machine = sass.carried_out(functions, entry_of(code), done.tolist()) / n
    return Work(done.sum() / n, machine, taken)


def machine_code(kernel: Kernel, setting: Setting, program: str) -> dict[str, list[sass.Instruction]]:
    """Return the machine code of a kernel's functions; its lines are the numbers of PTX instructions, from 1 on."""
    return sass.functions_of(linked(kernel.marked(), setting.capability).cubin, program)


def static(code: Code, program: str) -> int:
    """Return the instructions of a kernel's machine code, without those to which only warps come that fell apart."""
    return len(sass.warm(sass.functions_of(code.cubin, program)[entry_of(code)]))


def room_of(name: str, code: Code, capability: tuple[int, int]) -> int:
    """Return how many warps a multiprocessor has room for: those of a batch are a block, and all others one each."""
    warps = BATCH if name.startswith("context_matrix") else 1
    return MULTIPROCESSORS[capability].room(code.registers, code.shared, warps)


def entry_of(code: Code) -> str:
    """Return the name of a kernel."""
    return code.ptx.partition(".entry")[2].split("(", 1)[0].strip()


def _case(name: str, params: Params) -> tuple[Any, int, float | None]:
    """Return a training of a warp, how many units it has, and the bytes of rows of a unit."""
    rng, width = np.random.default_rng(1), padded(params.vector_size)
    none = [np.zeros(0, np.float32)] * 2
    if name.startswith("context_matrix"):
        rows, columns, words = 4, 64, 1000
        contexts = rng.integers(0, words, (rows, columns)).astype(np.int32)
        trained = [np.zeros((rows, width), np.float32) for _ in range(3 if params.optimizer == "adam" else 1)]
        prepared = OBJECTIVES["context_matrix"].prepare(params, zipf_counts(words, 10**6))
        others = np.zeros((words, width), np.float32)
        return Matrix(params, Columns(contexts, 0, 0, 0.05, KEY), trained, others, prepared), rows * columns, None
    if name.endswith("buckets"):
        n, words = 256, 1000
        tables, counts = [np.zeros((words, width), np.float32) for _ in range(2)], zipf_counts(words, 10**6)
        if name == "sg_hs, buckets":
            chosen = rng.choice(words, (2, n), p=counts / counts.sum())
            pairs = pack(chosen[:, np.argsort(chosen[1])], np.uint32)
            paths, steps = paths_of(counts, trees_of(params, words)), cut_steps(pairs)
            centers = unpack(pairs)[1][steps[:-1]].tolist()
            batches = -(-np.diff(steps) // BATCH)  # each reads its path once
            nodes = sum(k * len(paths[center][0]) for k, center in zip(batches.tolist(), centers, strict=True))
            return PathPairs(params, pairs, tables, counts, none), n, 8 * width * (1 + nodes / n)
        pairs, noise = (pack(rng.integers(0, words, (2, k)), np.uint32) for k in (n, 0))
        drawn = word_table(counts, params.ns_exponent)
        touched = 4 * (2 + params.negative / 4)  # four pairs read the negatives once
        bucket = Pairs(params, Bucket(pairs, noise), params.negative, 0, tables, drawn, none)
        return bucket, n, 2 * width * touched
    case = text_case(params)
    asked = rows_of(params, zipf_segment(text_counts(), 100_000, 0.0), case.prepared, **case.waiting())
    return case, len(case.segment.tokens), asked.bytes_of(params)


def text_case(params: Params, sample: float = 0.0, n_tokens: int = TEXT) -> Windows:
    """Return a training of a warp on so many tokens of a drawn text, which are then subsampled."""
    counts, width = text_counts(), padded(params.vector_size)
    segment, prepared = zipf_segment(counts, n_tokens, sample), _prepared(params)
    tables = [np.zeros((len(counts), width), np.float32) for _ in range(2)]
    return Windows(params, segment, 0, len(segment.tokens), tables, prepared, [np.zeros(0, np.float32)] * 2)


@cache
def text_counts() -> Any:
    """Return the counts of the text's words, as many as 100 MB of Wikipedia have."""
    return zipf_counts(VOCABULARY, TOKENS)


@cache
def _prepared(params: Params) -> Any:
    return OBJECTIVES[params.objective].prepare(params, text_counts())


def kernels(bench: Bench) -> None:
    """Print a row for each kernel, row length and GPU."""
    program = sass.disassembler()
    table = bench.table(
        "kernels",
        f"compiled for window {Setting(1).window}, negative {Setting(1).negative}; instructions and bytes a word "
        f"({', '.join(f'{name}: a {unit}' for name, unit in UNITS.items())}); estimated bounds of an H200, million/s",
        (
            "registers", "spilled, bytes", "local, bytes", "shared, bytes", "warps of a multiprocessor",
            "instructions of the kernel",
            "instructions a word, PTX", "instructions a word, SASS", "bytes of rows a word",
            "estimate: by issue", "estimate: by L2",
        ),
        ",.0f",
    )  # fmt: skip
    for name in bench.options.kernels:
        for vector_size in bench.options.dims:
            for capability in (divmod(number, 10) for number in bench.options.capabilities):
                setting = Setting(vector_size, capability)
                code, work = compiled(name, setting), work_of(name, setting, program)
                hopper = capability == (9, 0)  # what an H200 is
                by_issue = ISSUED / work.sass / 1e6 if work.sass and hopper else None if program else "no nvdisasm"
                by_l2 = FROM_L2 / work.bytes / 1e6 if work.bytes and hopper else None
                table.row(
                    f"{name}, d={vector_size}, sm_{capability[0]}{capability[1]}", code.registers, code.spilled,
                    code.local, code.shared, room_of(name, code, capability),
                    static(code, program) if program else "no nvdisasm", work.ptx,
                    work.sass if program else "no nvdisasm", work.bytes, by_issue, by_l2,
                )  # fmt: skip
    bench.note(
        "Instructions are those of warps. Estimated bounds are no measurements: 132 multiprocessors at 1.755 GHz of "
        "four instructions a cycle each, 5.5 TB/s from L2."
    )
