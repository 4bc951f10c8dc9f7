"""Kernels for NVIDIA GPUs: what they compute, in Numba's simulator and on a GPU if there is one; what they compile to.

Numba decides when it is imported whether it simulates: so each of the first two runs in a process of its own.
"""

import os
import re
import subprocess
import sys
import warnings
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from daskw2v import Params, Resources, train
from daskw2v.errors import ClusterError, Daskw2vError, MissingExtraError, ParameterError
from daskw2v.kernels.cuda import check_gpu
from daskw2v.sampling.reader import DeviceSpan
from daskw2v.sampling.segments import SegmentBuilder, append_threshold

ROOT = Path(__file__).parents[2]
SECONDS = {"simulator": 560, "gpu": 520}  # most of a GPU's are compilation, of dozens of kernels
CONTRACTS = [
    "test_column_kernels",
    "piece_kernels",
    "bucket_kernels",
    "text_on_cuda",
    "on_cuda",
    "replicas_on_cuda",
]
NETWORK = "network_on_cuda"
COLUMNS = Params(objective="context_matrix", strategy="columns", min_count=1)


def has_gpu():
    try:
        check_gpu()
    except Daskw2vError:
        return False
    return True


def run_contracts(where, contracts, *options):
    """Run contracts of kernels in a process of their own, and return what pytest printed."""
    pytest.importorskip("numba_cuda", reason="numba-cuda comes with daskw2v[cuda]")
    environment = {**os.environ, "DASKW2V_TEST_DEVICE": "cuda", "NUMBA_ENABLE_CUDASIM": str(int(where == "simulator"))}
    result = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            *(f"tests/contracts/{contract}.py" for contract in contracts),
            "-q",
            "-p",
            "no:cacheprovider",
            *options,
        ],
        cwd=ROOT,
        env=environment,
        text=True,
        capture_output=True,
        timeout=SECONDS[where],
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.mark.slow
def test_kernels__equal_their_references_on_a_few_rows():
    """One case of each kernel, in the simulator."""
    told = run_contracts("simulator", CONTRACTS[:3], "-k", "few_pairs or longer or leave_words_without")
    assert "8 passed" in told


@pytest.mark.parametrize("contract", CONTRACTS)
@pytest.mark.parametrize(
    "where",
    [
        pytest.param("simulator", marks=pytest.mark.slow),
        pytest.param("gpu", marks=pytest.mark.gpu),
    ],
)
@pytest.mark.timeout(max(SECONDS.values()) + 20)
def test_kernels__keep_their_contracts(where, contract):
    if where == "gpu" and not has_gpu():
        pytest.skip("no GPU: only the simulator was asked")
    told = run_contracts(where, [contract])
    only_simulated = where == "gpu" and contract in ("piece_kernels", "on_cuda")
    assert ("skipped" in told) == only_simulated, "pieces have an order there, and nowhere else"


@pytest.mark.parametrize(
    "where", [pytest.param("simulator", marks=pytest.mark.slow), pytest.param("gpu", marks=pytest.mark.gpu)]
)
@pytest.mark.timeout(max(SECONDS.values()) + 20)
def test_network__keeps_its_contract(torch, where):
    if where == "gpu" and not (has_gpu() and torch.cuda.is_available()):
        pytest.skip("no GPU, or a build of PyTorch without CUDA: only the simulator was asked")
    assert "3 passed" in run_contracts(where, [NETWORK])


@pytest.mark.gpu
def test_kernel__is_compiled_once_for_all_processes(tmp_path):
    if not has_gpu():
        pytest.skip("no GPU: nothing is compiled for it")
    script = (
        "from tests.support.cuda.compiling import Setting; from tests.support.cuda.trainings import case_of;"
        "from daskw2v.kernels.compilation import here; case_of('sgns', Setting(8), 6).on_gpu(); print(here.seconds)"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", script]
    seconds = [
        float(subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=True).stdout)
        for _ in range(2)
    ]
    assert seconds[0] > 0 == seconds[1]


@pytest.fixture(scope="module")
def compiling():
    """What compiles kernels without a GPU."""
    pathfinder = pytest.importorskip("cuda.pathfinder", reason="numba-cuda comes with daskw2v[cuda]")
    try:
        for library in ("nvvm", "nvJitLink"):
            pathfinder.load_nvidia_dynamic_lib(library)
    except pathfinder.DynamicLibNotFoundError:
        pytest.skip("CUDA's compiler comes with daskw2v[cuda]")
    return import_module("tests.support.cuda.compiling")


def test_launch__of_few_warps_is_no_reason_to_warn():
    """Numba warns of each launch of less than 128 blocks, and a warning is an error here: all tests on a GPU failed."""
    pytest.importorskip("numba_cuda", reason="numba-cuda comes with daskw2v[cuda]")
    dispatcher = import_module("numba.cuda.dispatcher")
    import_module("daskw2v.kernels.cuda.warp")
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        dispatcher._LaunchConfiguration(None, (1, 1, 1), (32, 1, 1), 0, 0)
    assert [str(warning.message) for warning in warned] == []


class OfRoom:
    """A kernel that the GPU has room for so often; it notes how it is launched."""

    def __init__(self, room, library):
        self.room, self.library, self.asked, self.launched = room, library, [], []

    def typeof_pyval(self, value):
        return type(value)

    def compile(self, types):
        assert types == (int, str)
        return self

    def max_cooperative_grid_blocks(self, *how):
        self.asked.append(how)
        return self.room

    def __getitem__(self, how):
        return lambda *arguments: self.launched.append((how, arguments))


class OfDriver:
    """A driver, a GPU, and a function that it loaded; it notes what it allows functions."""

    CUfunction_attribute = SimpleNamespace(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES="most shared")
    handle, id, MULTIPROCESSOR_COUNT, MAX_BLOCKS_PER_MULTIPROCESSOR = "function", "gpu", 132, 32

    def __init__(self):
        self.allowed, self.driver, self.binding, self.library = [], self, self, self

    def get_cufunc(self):
        return self

    def cuKernelSetAttribute(self, *what):
        self.allowed.append(what)

    def get_current_device(self):
        return self


def test_launch__has_the_warps_that_the_compiled_kernel_leaves_room_for(monkeypatch):
    pytest.importorskip("numba_cuda", reason="numba-cuda comes with daskw2v[cuda]")
    launching, driver = import_module("daskw2v.kernels.cuda.gpus"), OfDriver()
    monkeypatch.setattr(launching, "driver", driver)
    monkeypatch.setattr(launching, "cuda", driver)
    kernel, most = OfRoom(1452, driver), [launching.room(n) for n in (None, 7, 10**6)]
    assert most == [132 * 32, 7, 132 * 32]
    with_ring = launching.WarpKernel(kernel, 60_000)
    assert [launching.launch(with_ring, n, "stream", 1, "a") for n in most] == [1452, 7, 1452]
    assert kernel.launched == [((warps, 32, "stream", 60_000), (1, "a")) for warps in (1452, 7, 1452)]
    assert kernel.asked == [(32, 60_000)], "the driver is asked once of a kernel"
    assert driver.allowed == [("most shared", 60_000, "function", "gpu")]


KERNELS = (
    "sgns",
    "sgns, pair",
    "cbow_ns",
    "sg_hs",
    "cbow_hs",
    "sgns, buckets",
    "sg_hs, buckets",
    "context_matrix",
    "context_matrix, sgd",
)
REGISTERS = {"sgns": 128, "sgns, pair": 128, "cbow_ns": 128, "cbow_hs": 128, "context_matrix": 84}  # d=128, sm_90
SPILL = {"sgns, buckets", "sg_hs"}  # on GPUs before 9.0, whose compiler needs more registers
SIZES = [(name, 128) for name in KERNELS] + [
    ("sgns", 300),
    ("sg_hs", 100),
    ("sgns, buckets", 300),
    ("sg_hs, buckets", 300),
]
LONG = [(name, capability) for name in ("sgns", "cbow_ns") for capability in ((8, 0), (9, 0), (10, 0))]


def test_kernels__have_names_of_their_own_in_the_cache(compiling):
    """The same in every process, of what a kernel closes over as well: what was compiled is found by it."""
    caches = import_module("daskw2v.kernels.cuda.cache")
    settings = [compiling.Setting(128), compiling.Setting(96), compiling.Setting(128, (8, 0))]
    kernels = {(name, setting): compiling.KERNELS[name](setting)[0] for name in KERNELS for setting in settings}
    assert all(isinstance(kernel._cache, caches.CudaKernelCache) for kernel in kernels.values())
    assert len({caches.make_key(kernel.py_func) for kernel in kernels.values()}) == len(set(kernels.values()))
    assert "0x" not in str([caches.make_key(kernel.py_func) for kernel in kernels.values()]), "an address is no name"


@pytest.mark.parametrize(("name", "vector_size"), SIZES)
def test_kernel__is_compiled_for_hopper_without_spills(compiling, name, vector_size):
    assert set(compiling.KERNELS) == set(KERNELS)
    code = compiling.compiled(name, compiling.Setting(vector_size))
    assert code.spilled == code.local == 0
    assert ".local" not in code.ptx
    assert code.registers <= (REGISTERS.get(name, 255) if vector_size == 128 else 255)
    assert code.shared <= 48 << 10
    assert ("red.global.add.v4.f32" in code.ptx) == (not name.startswith("context_matrix"))


@pytest.mark.parametrize(("name", "capability"), LONG)
def test_kernel__has_a_ring_for_long_rows_and_windows_where_four_have(compiling, name, capability):
    limits = import_module("tests.support.cuda.occupancy").MULTIPROCESSORS[capability]
    code = compiling.compiled(name, compiling.Setting(300, capability, window=10))
    assert code.ring == (8 * 304 * 21 if capability >= (9, 0) else 0)
    assert "ld.shared.v4" in code.ptx or not code.ring
    assert limits.room(code.registers, code.shared) >= 4


@pytest.mark.parametrize("name", ["sgns", "sg_hs", "cbow_hs", "sgns, buckets", "sg_hs, buckets", "context_matrix"])
def test_kernel__is_compiled_for_older_gpus(compiling, name):
    """The text of the oldest one is right for those after it."""
    oldest = compiling.compiled(name, compiling.Setting(128, (7, 5)))
    for code in (oldest, compiling.linked(oldest.ptx, (8, 0))):
        assert "red.global.add.v4.f32" not in code.ptx
        assert code.shared <= 48 << 10
        assert code.registers <= 255
        assert name in SPILL or code.spilled == code.local == 0


@pytest.mark.parametrize("capability", [(7, 5), (8, 0), (9, 0), (10, 0)], ids=str)
def test_helpers__are_compiled_without_spills(compiling, capability):
    """As small as they are, as many warps go side by side as a GPU has room for."""
    for name in compiling.HELPERS:
        code = compiling.compiled(name, compiling.Setting(128, capability))
        assert code.spilled == code.local == 0, name
        assert code.registers <= 64, name


def test_compiled_helpers__cut_text_as_the_processor_does(compiling, monkeypatch):
    """Their PTX carried out in NumPy: so what was compiled draws the same tokens."""
    emulated, cutting = import_module("tests.support.cuda.emulated"), import_module("daskw2v.sampling.cuda")
    setting = compiling.Setting(128)

    class Carried:
        """Launches the PTX of a kernel as Numba launches the kernel."""

        def __init__(self, name):
            self.kernel = emulated.Kernel(compiling.compiled(name, setting).ptx)

        def __getitem__(self, launched):
            blocks, lanes, _ = launched
            return lambda *arguments: self.kernel.launch(arguments, (lanes, 1), blocks)

    for kernel, name in (
        ("_look_up", "look up"),
        ("_count_kept", "count"),
        ("_write_kept", "place"),
        ("_write_bounds", "bound"),
        ("_write_ends", "close"),
    ):
        monkeypatch.setattr(cutting, kernel, Carried(name.removeprefix("_")))
    monkeypatch.setattr(cutting, "cuda", SimpleNamespace(device_array=np.zeros))
    rng, key = np.random.default_rng(0), np.uint64(12345)
    ids = rng.permutation(np.arange(-1, 39)).astype(np.int32)
    codes = rng.integers(0, 40, 2500).astype(np.int32)
    starts = np.sort(rng.choice(2500, 300, replace=False))
    keep = (rng.random(20) * 2**32).astype(np.uint64)
    builder = SegmentBuilder(len(codes), keep, key)
    builder.add(codes, starts, ids, 10**10)
    expected, counts = builder.finish(), np.zeros(2, np.int64)
    edges = [np.searchsorted(starts, [a, b]) for a, b in ((0, 1100), (1100, 2500))]
    spans = [
        DeviceSpan(codes[a:b], ids, starts[slice(*edge)], a, 10**10 + a)
        for (a, b), edge in zip(((0, 1100), (1100, 2500)), edges, strict=True)
    ]
    found, *centers = cutting.Cutter().cut(spans, 10**10 + 50, 10**10 + 2400, append_threshold(keep), key, counts, None)
    n = found.bounds[-1]
    np.testing.assert_array_equal(found.tokens[:n], expected.tokens)
    np.testing.assert_array_equal(found.positions[:n], expected.positions)
    np.testing.assert_array_equal(np.unique(found.bounds), np.unique(expected.bounds))
    assert (int(centers[0][0]), int(centers[1][0])) == expected.centers(10**10 + 50, 10**10 + 2400)
    assert counts.tolist() == [np.count_nonzero(ids[codes[50:2400]] >= 0), 0]


@pytest.mark.parametrize("name", ["sg_hs", "cbow_hs", "sgns, buckets"])
def test_kernel__adds_its_totals_in_float64_and_nothing_else(compiling, name):
    """Many GPUs have little of it: what is there only converts, but for these additions."""
    ptx = compiling.compiled(name, compiling.Setting(128)).ptx
    done = re.findall(r"^\s*(?:@\S+ )?(\w[\w.]*\.f64)\s", ptx, re.MULTILINE)
    assert set(done) <= {
        "ld.param.f64",
        "cvt.rn.ftz.f32.f64",
        "cvt.rn.f64.s64",
        "cvt.ftz.f64.f32",
        "atom.global.add.f64",
    }
    assert done.count("atom.global.add.f64") == (1 if "buckets" in name else 2)


@pytest.mark.parametrize(
    ("name", "capability", "how"),
    [
        *((name, (9, 0), {}) for name in KERNELS),
        ("sgns", (10, 0), {}),
        *((name, (9, 0), {"market_negative": 3}) for name in ("sgns", "sgns, pair", "cbow_ns")),
    ],
    ids=str,
)
def test_compiled_kernel__is_its_reference(compiling, name, capability, how):
    """Its PTX carried out in NumPy: so without a GPU it is known what was compiled, not only what was written."""
    cases, emulated, trainings = (
        import_module(f"tests.support.cuda.{module}") for module in ("cases", "emulated", "trainings")
    )
    setting = compiling.Setting(128, capability, **how)
    case = trainings.case_of(name, setting, 20, n_words=60)
    code = compiling.compiled(name, setting)
    found, _ = case.emulated(emulated.Kernel(code.ptx, code.ring))
    truth = case.truth()
    assert found.totals == pytest.approx(truth.totals, rel=1e-5, abs=1e-5)
    assert cases.difference(case.tables, found, truth) < 1e-4


@pytest.mark.parametrize("name", ["sgns", "sgns, pair", "cbow_ns"])
def test_compiled_kernel__reads_and_adds_the_rows_that_are_counted_from_the_text(compiling, name):
    emulated, traffic, trainings = (
        import_module(f"tests.support.cuda.{module}") for module in ("emulated", "traffic", "trainings")
    )
    setting = compiling.Setting(128)
    case = trainings.case_of(name, setting, 30, n_words=60)
    case = case._replace(params=case.params.replace(shrink_windows=False))
    code = compiling.compiled(name, setting)
    kernel = emulated.Kernel(code.ptx, code.ring)
    _, done = case.emulated(kernel)
    rows = traffic.rows_of(case.params, case.segment, None, case.hot_rows)
    for kind, share in (("cg", rows.read), ("red", rows.added)):
        counted = sum(times for step, times in zip(kernel.steps, done, strict=True) if kind in step.name)
        assert counted == pytest.approx(share * len(case.segment.tokens))


@pytest.mark.parametrize("kind", ["", ", sgd"])
@pytest.mark.parametrize(("vector_size", "negative"), [(112, 5), (512, 64), (1024, 5)])
def test_columns__keep_their_rows_in_registers(compiling, vector_size, negative, kind):
    code = compiling.compiled(f"context_matrix{kind}", compiling.Setting(vector_size, negative=negative))
    assert "ld.global.nc.v4" in code.ptx
    assert ".local" not in code.ptx
    assert code.spilled == 0


@pytest.mark.parametrize(("vector_size", "negative"), [(4096, 5), (65536, 1024)])
def test_columns__are_compiled_for_rows_of_any_length(compiling, vector_size, negative):
    assert "0 bytes gmem" in compiling.compiled("context_matrix", compiling.Setting(vector_size, negative=negative)).log


def test_train__says_what_a_worker_lacks(tmp_path, client, monkeypatch):
    """Before any text is read."""
    if has_gpu():
        pytest.skip("nothing is lacking")
    text, work = tmp_path / "text.txt", tmp_path / "work"
    text.write_text("a b\n")

    def on_cuda():
        train(text, work=work, params=COLUMNS, resources=Resources(device="cuda", threads=1), client=client)

    if find_spec("numba_cuda") is not None:
        with pytest.raises(ClusterError, match=r"device='cuda' finds no GPU, or no driver, on .*device='cpu'"):
            on_cuda()
    monkeypatch.setitem(sys.modules, "numba_cuda", None)
    with pytest.raises(MissingExtraError, match=r"numba_cuda is not installed.*pip install 'daskw2v\[cuda\]'"):
        on_cuda()
    assert not (work / "shards").exists()


@pytest.mark.parametrize(
    ("objective", "strategy", "what"), [("cbow_ns", "rotation", "buckets"), ("sgns", "columns", "columns")]
)
def test_train__refuses_what_has_no_kernel_for_a_gpu(tmp_path, objective, strategy, what):
    params = Params(objective=objective, strategy=strategy)
    with pytest.raises(ParameterError, match=f"objective='{objective}' has no kernel for {what} for device='cuda'"):
        train("no.txt", work=tmp_path, params=params, resources=Resources(device="cuda", threads=1))
