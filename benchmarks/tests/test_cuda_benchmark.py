"""The benchmark of kernels for NVIDIA GPUs: what of it needs no GPU, and in Numba's simulator what does."""

import argparse
import io
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from daskw2v import Params
from daskw2v.errors import Daskw2vError
from daskw2v.kernels.cuda import check_gpu
from daskw2v.sampling.segments import Segment
from tests.support import zipf
from tests.support.cuda import emulated, traffic

main, bench_module, peers, demand = (
    pytest.importorskip(f"benchmarks.cuda.{name}", reason="benchmarks need what daskw2v[bench] installs")
    for name in ("__main__", "bench", "peers", "demand")
)
ROOT = Path(__file__).parents[2]
FLOAT = 4


def test_tables__are_all_and_cost_where_there_is_a_price():
    def chosen(*arguments):
        return main.chosen(main.BENCHMARK.parse(arguments))

    assert chosen() == [name for name in main.TABLES if name != "cost"]
    assert "cost" in chosen("--price", "3")
    assert chosen("--tables", "kernels") == ["kernels"]
    for wrong in (["--tables", "cost"], ["--peer", "no command"], ["--peer", "a=b {colour}"]):
        with pytest.raises(SystemExit):
            chosen(*wrong)


def test_command__says_that_there_is_no_gpu():
    try:
        check_gpu()
    except Daskw2vError:
        command = [sys.executable, "-m", "benchmarks.cuda", "--tables", "kernels", "ceilings"]
        result = subprocess.run(command, cwd=ROOT, text=True, capture_output=True, check=False)
        assert result.returncode == 1
        assert "cuda" in result.stderr
        assert "Traceback" not in result.stderr
        assert "Kernels" not in result.stdout, "nothing was measured"
    else:
        pytest.skip("there is one")


def test_table__that_fails_takes_no_later_one_down(tmp_path, monkeypatch, capsys):
    def fail(bench):
        raise ValueError("out of luck")

    def succeed(bench):
        bench.table("it", ("figure",)).row("row", 1.5)

    modules = {"bad": SimpleNamespace(run=fail), "good": SimpleNamespace(run=succeed)}
    monkeypatch.setattr(main, "TABLES", {name: f"{name}.run" for name in modules})
    monkeypatch.setattr(main, "import_module", lambda name: modules[name.rpartition(".")[2]])
    bench = bench_module.Bench(argparse.Namespace(), tmp_path, io.StringIO())
    assert [main.printed(name, bench) for name in ("bad", "good")] == [False, True]
    assert [table.rows[0].cells for table in bench.tables] == [{"figure": 1.5}]
    assert "out of luck" in capsys.readouterr().err


def test_bytes__are_counted_from_the_text_where_the_profiler_fails(tmp_path, monkeypatch):
    monkeypatch.setattr(demand.shutil, "which", lambda name: sys.executable)  # which knows no --csv
    monkeypatch.setattr(demand, "has_gpu", lambda: True)
    monkeypatch.setattr(demand, "over_text", lambda: ["cbow_ns"])
    monkeypatch.setattr(demand.Windows, "waiting", lambda self: {"ring": True})
    bench = bench_module.Bench(argparse.Namespace(vocabularies=[40], tokens=200), tmp_path, io.StringIO())
    demand.demand(bench)
    for row in bench.tables[0].rows:
        assert row.cells["asked for"] > 0
        assert row.cells["ncu: L2"] == "ncu failed"
    assert bench.out.getvalue().count("ncu failed: ") == 1, "it is not asked again"


def test_profiler__is_read():
    lines = [
        "==PROF== Connected", '"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"',
        '"0","run","dram__bytes.sum","byte","1,234,567"', '"0","run","lts__t_bytes.sum","byte","42"',
    ]  # fmt: skip
    assert demand.counted(lines) == {"dram__bytes.sum": 1234567.0, "lts__t_bytes.sum": 42.0}


def test_peer__is_run_with_the_same_text_and_settings(tmp_path):
    code = "import sys, pathlib; pathlib.Path(sys.argv[2]).write_text(' '.join(sys.argv[1:]))"
    command = f'{sys.executable} -c "{code}" {{text}} {{output}} {{size}} {{window}} {{negative}} {{epochs}} {{sample}}'
    text, output = tmp_path / "the text.txt", tmp_path / "out"
    assert peers.seconds_of(command, text, output, Params(vector_size=128), 3) > 0
    assert output.read_text() == f"{text} {output} 128 5 5 3 0.0001"
    with pytest.raises(subprocess.CalledProcessError):
        peers.seconds_of(f"{sys.executable} -c 'exit(3)'", text, output, Params(), 1)


def test_peers__are_compared_by_the_words_of_all_epochs_and_of_those_beyond_the_first():
    called = []

    def program(epochs):
        called.append(epochs)
        return 1.0 + epochs  # seconds

    whole, beyond = peers.compare({"it": program}, 100, 5, 2)["it"]
    assert called == [1, 5] * 3
    assert (whole.middle, beyond.middle) == (pytest.approx(500 / 6), pytest.approx(100.0))


TEXT = Segment(np.array([0, 1, 2, 1, 3], np.int32), np.arange(5), np.array([0, 3, 5]))  # "0 1 2", "1 3"


@pytest.mark.parametrize(
    ("how", "read", "added"),
    [
        # Each token's row comes into the ring once; a window meets its center and two negatives
        ({}, 5 + 5 * 3, 5 + 5 * 3),
        # In windows of one word each way there are 2 + 4 contexts; three of them are 0 or 1
        ({"hot_rows": 2}, 2 + 4 + 5 * 3, 2 + 4 + 5 * 3),
        ({"ring": False}, 6 + 5 * 3, 6 + 5 * 3),
        ({"objective": "cbow_ns", "ring": False}, 2 * 6 + 5 * 3, 6 + 5 * 3),
        ({"negative_sharing": "pair"}, 5 + 6 * 3, 5 + 6 * 3),
    ],
)
def test_rows__are_those_of_a_text_counted_by_hand(how, read, added):
    options = {key: how.pop(key) for key in ("objective", "negative_sharing") if key in how}
    params = Params(vector_size=20, window=1, shrink_windows=False, negative=2, **options)
    rows = traffic.rows_of(params, TEXT, None, **how)
    assert (5 * rows.read, 5 * rows.added) == (pytest.approx(read), pytest.approx(added))
    assert rows.bytes_of(params) == pytest.approx(FLOAT * 32 * (read + added) / 5), "rows are padded"


def test_drawn_text__has_the_words_and_sentences_of_its_law():
    counts = zipf.zipf_counts(1000, 10**6)
    assert len(counts) == 1000
    assert (np.diff(counts) <= 0).all()
    segment = zipf.zipf_segment(counts, 50_000, 0.0)
    found = np.bincount(segment.tokens, minlength=1000) / 50_000
    np.testing.assert_allclose(found[:20], counts[:20] / counts.sum(), rtol=0.15)
    assert segment.bounds[-1] == 50_000
    assert np.diff(segment.bounds).mean() == pytest.approx(zipf.SENTENCE, rel=0.1)
    fewer = zipf.zipf_segment(counts, 50_000, 1e-3)
    assert len(fewer.tokens) == len(fewer.positions) == fewer.bounds[-1] < 50_000


PTX = """
.version 9.0
.target sm_90
.address_size 64
.visible .shared .align 4 .b8 kept[128];
.visible .entry doubled(.param .u64 doubled_param_0, .param .u64 doubled_param_1)
{
    .reg .pred %p<3>;
    .reg .b32 %r<9>;
    .reg .b64 %rd<9>;
    ld.param.u64 %rd1, [doubled_param_0];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd3, %rd1, %rd2;
    mov.u32 %r2, 0;
    setp.ge.u32 %p1, %r1, 3;
    @%p1 bra $L__BB0_2;
$L__BB0_1:
    add.s32 %r2, %r2, 2; // for lanes 0 to 2, as often as their number says
    setp.lt.u32 %p2, %r2, %r1;
    @%p2 bra $L__BB0_1;
$L__BB0_2:
    st.global.u32 [%rd3], %r2;
    ret;
}
"""


def test_emulator__lets_lanes_part_and_meet_again():
    kernel = emulated.Kernel(PTX)
    values = np.zeros(32, np.uint32)
    address = emulated._BASE
    kernel.params = dict.fromkeys(kernel.params, np.uint64)
    arguments = np.zeros(0, np.uint32), values
    arena = emulated._Arena(arguments)
    done = np.zeros(len(kernel.steps), np.int64)
    place = dict(zip(kernel.params, (address + 256, 0), strict=True))
    emulated._Block(kernel, arena.bytes, place, (32, 1), 0, 1).run(done)
    arena.give_back()
    assert values.tolist() == [2, 2, 2] + [0] * 29
    assert done.tolist() == [1] * 12


SIMULATED = """
import argparse, sys
from pathlib import Path
from benchmarks.cuda.bench import Bench
from benchmarks.cuda.ceilings import ceilings
from benchmarks.cuda.correctness import correctness
from benchmarks.cuda.speed import speed_of
from daskw2v import Params
options = argparse.Namespace(times=1, dims=[8], vocabularies=[40], tokens=80, parts=0, words=6, rows_a_warp=4)
bench = Bench(options, Path(), sys.stdout)
correctness(bench)
ceilings(bench, 16, 2)
assert all(cell < 1e-4 for row in bench.tables[0].rows for cell in row.cells.values())
assert all(row.cells["GB/s"].middle > 0 for row in bench.tables[1].rows)
found = speed_of(bench, Params(vector_size=8, sample=0.01), bench.corpora[0])
assert 0 < found.trained.middle < found.raw.middle
"""


def test_tables__are_printed_in_the_simulator():
    if find_spec("numba_cuda") is None:
        pytest.skip("numba-cuda comes with daskw2v[cuda]")
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}
    result = subprocess.run(
        [sys.executable, "-c", SIMULATED], cwd=ROOT, env=environment, text=True, capture_output=True, check=False
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("context_matrix") == 2
