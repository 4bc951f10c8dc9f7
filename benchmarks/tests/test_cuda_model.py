"""The model of what GPUs train at most: its parts by numbers known by hand, its bytes by those that were measured."""

import argparse
import io
import math
from importlib.util import find_spec

import numpy as np
import pytest

from daskw2v import Params
from daskw2v.objectives.registry import settled
from tests.support.cuda import occupancy

bounds, cards, chain, kernels, measured, model, sass, bench_module = (
    pytest.importorskip(f"benchmarks.cuda.{name}", reason="benchmarks need what daskw2v[bench] installs")
    for name in ("bounds", "cards", "chain", "kernels", "measured", "model", "sass", "bench")
)
needs_cuda = pytest.mark.skipif(find_spec("numba_cuda") is None, reason="numba-cuda comes with daskw2v[cuda]")
H200 = cards.CARDS["H200"]


@pytest.mark.parametrize(
    ("capability", "registers", "shared", "expected"),
    [
        ((9, 0), 104, 11_392, 16),  # four parts of 16,384 registers have room for four warps of 3,328 each
        ((9, 0), 96, 11_392, 18),
        ((9, 0), 135, 18_816, 11),
        ((8, 0), 208, 11_392, 8),
        ((7, 5), 32, 1024, 16),
        ((9, 0), 32, 0, 32),
    ],
)
def test_room__is_what_cudas_occupancy_calculator_says(capability, registers, shared, expected):
    assert occupancy.MULTIPROCESSORS[capability].room(registers, shared) == expected


def instruction(line, text, stall, written=7, read=7, waits=0):
    return sass.Instruction(line, text, stall | written << 5 | read << 8 | waits << 11)


def test_chain__adds_what_an_instruction_waits_for():
    code = [
        instruction(1, "LDG.E.128.STRONG.GPU R4, [R2.64]", 1, written=0),
        instruction(2, "FFMA R9, R9, R9, R9", 4),
        instruction(3, "@!P0 FFMA R8, R4, R4, R4", 4, waits=1),
    ]
    assert chain.cycles_of(code, [1, 1, 1], 270) == 270 + 4, "loads are there 270 cycles after they began"
    assert chain.cycles_of(code, [1, 1, 1], 600) == 600 + 4
    assert chain.cycles_of(code, [0, 1, 1], 270) == 4 + 4, "nothing was loaded"
    assert chain.cycles_of(code, [10, 10, 10], 270) == 10 * 274
    assert chain.cycles_of(code, [1, 10, 10], 270) == 1 + 40 + 40 + (270 - 5), "it waits as often as it loads"
    shuffled = [instruction(1, "SHFL.BFLY PT, R0, R1, 0x10, 0x1f", 2, written=3), instruction(2, "EXIT", 5, waits=8)]
    assert chain.cycles_of(shuffled, [1, 1], 270) == 23 + 5


def test_control__is_read_from_the_upper_half_of_an_instruction():
    functions = sass.parsed([
        '\t.section\t.text.run,"ax"', '\t//## File "kernel", line 7',
        "        /*04b0*/   @P1 LDG.E.128.STRONG.GPU R16, desc[UR36][R8.64] ;   /* 0x0000002408107981 */",
        "                                                                       /* 0x0000a2000c1efd00 */",
        "        /*04c0*/   FFMA.FTZ R92, R6, R9, R11 ;                         /* 0x00000009065c7223 */",
        "                                                                       /* 0x008fe2000001000b */",
    ])  # fmt: skip
    load, multiply = functions["run"]
    assert (load.line, load.opcode) == (7, "LDG.E.128.STRONG.GPU")
    assert chain.Control.of(load.control) == (1, 2, 0, 0)
    assert chain.Control.of(multiply.control) == (1, 7, 7, 1 << 3)


def test_busiest_slice__has_the_hottest_rows():
    assert bounds.busiest(np.full(200_000, 1.0), 4, 80) == pytest.approx(1.0, abs=0.1)
    one = np.full(200_000, 1e-5)
    one[17] = 2.0  # half of all
    assert bounds.busiest(one, 1, 80) == pytest.approx(0.5 + 0.5 * 80, rel=0.1)
    assert bounds.busiest(one, 4, 80) < bounds.busiest(one, 1, 80)


def test_missed_rows__are_those_beyond_a_cache():
    rates = np.full(1000, 0.007)
    assert bounds.missed(rates, 1000) == 0
    assert bounds.missed(rates, 250) == pytest.approx(0.75 * 7)
    skewed = np.concatenate([np.full(100, 0.06), np.full(900, 1 / 900)])
    assert bounds.missed(skewed, 250) == pytest.approx(1 - 150 / 900, rel=0.02), "rows that are used often stay"


def profile(blocks, instructions=1000.0, cycles=4):
    code = [instruction(1, "FFMA R9, R9, R9, R9", cycles)]
    return bounds.Profile(100, blocks, instructions, code, [1000.0])


def bounds_with(profile, launched=None):
    rows = bounds.Rows(np.full(1000, 0.007), 0.0)
    return bounds.bounds_of(H200, Params(vector_size=128), profile, rows, launched)


def test_bounds__follow_instructions_warps_and_waves():
    found = bounds_with(profile(16))
    assert found.issue == pytest.approx(132 * 4 * 1.98e9 / 1000)
    assert found.latency == pytest.approx(132 * 16 * 1.98e9 / (4000 * bounds.CHAIN))
    assert math.isinf(found.DRAM), "all rows are in L2"
    assert bounds_with(profile(16, instructions=2000.0)).issue == pytest.approx(found.issue / 2)
    assert bounds_with(profile(16), 4).latency == pytest.approx(found.latency / 4)
    assert bounds_with(profile(11), 16).latency == pytest.approx(found.latency / 2), "two waves of eight on average"
    assert found.limit == "L2"
    assert bounds_with(profile(1)).limit == "latency"


@needs_cuda
@pytest.mark.parametrize("objective", ["sgns", "cbow_ns", "sg_hs", "cbow_hs"])
def test_bytes__are_near_what_nsight_compute_counted(objective):
    params, card = model.params_of(objective, vector_size=128, sample=0), cards.CARDS["H100"]
    rows = bounds.rows_of(params, kernels.text_counts())
    assert 512 * rows.through_l2(card) == pytest.approx(measured.L2_BYTES[objective], rel=0.05)
    assert 1024 * rows.absent(card, 512) == pytest.approx(measured.DRAM_BYTES[objective], rel=0.45)


@needs_cuda
@pytest.mark.parametrize("sample", [1e-4, 0.0])
@pytest.mark.parametrize("objective", ["sgns", "cbow_ns"])
def test_memory_bound__is_near_what_was_measured(objective, sample):
    params = model.params_of(objective, vector_size=128, sample=sample)
    found = bounds.bounds_of(H200, params, profile(16, 1.0, 1), bounds.rows_of(params, kernels.text_counts()))
    assert min(found) == found.L2 == pytest.approx(1e6 * measured.SPEED["1 to 5", sample][objective], rel=0.2)


@needs_cuda
def test_rows__of_a_window_without_a_ring_are_all_of_its_contexts():
    wide = settled(Params(objective="cbow_ns", vector_size=1000, window=10))
    rows = bounds.rows_of(wide, kernels.text_counts())
    assert rows.touched == pytest.approx(11 + 6)
    assert rows.again == pytest.approx(11), "CBOW reads them twice"


@needs_cuda
def test_model__names_the_smallest_bound_of_each_card(monkeypatch):
    monkeypatch.setattr(model, "profile_of", lambda params, capability: profile(16))
    options = argparse.Namespace(
        kernels=["sgns"], dims=[128], windows=[5], samples=[0.0], vocabularies=[1000], cards=["A100", "H200"],
        tokens=20_000,
    )  # fmt: skip
    bench = bench_module.Bench(options, None, io.StringIO())
    model.model(bench)
    predicted, compared, moved = bench.tables
    a100, h200 = predicted.rows
    assert a100.name.startswith("A100, sgns, d=128, 1,000 words")
    assert (h200.cells["limit"], h200.cells["by DRAM"]) == ("L2", "none")
    assert h200.cells["trained"] == h200.cells["before subsampling"] > a100.cells["trained"]
    assert len(compared.rows) == len(measured.SPEED) + len(measured.SWEEP)
    row = compared.rows[0].cells
    assert row["error, %"] == pytest.approx(100 * (row["predicted"] / row["measured"] - 1))
    assert [row.name for row in moved.rows] == ["sgns"]
