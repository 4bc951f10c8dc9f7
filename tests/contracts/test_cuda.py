"""Kernels for NVIDIA GPUs: what they compute, in Numba's simulator and on a GPU if there is one; what they compile to.

Numba decides when it is imported whether it simulates: so each of the first two runs in a process of its own.
"""

import os
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

from daskw2v import Params, Resources, train
from daskw2v.cuda import check_gpu
from daskw2v.errors import ClusterError, Daskw2vError, MissingExtraError, ParameterError

ROOT = Path(__file__).parents[2]
CONTRACTS = [f"tests/contracts/{name}.py" for name in ("test_column_kernels", "piece_kernels", "on_cuda")]
COLUMNS = Params(objective="context_matrix", strategy="columns", min_count=1)


def has_gpu():
    try:
        check_gpu()
    except Daskw2vError:
        return False
    return True


@pytest.mark.parametrize("where", ["simulator", "gpu"])
def test_kernels__keep_their_contracts(where):
    if where == "gpu" and not has_gpu():
        pytest.skip("no GPU, or no numba-cuda: only the simulator was asked")
    environment = {**os.environ, "DASKW2V_TEST_DEVICE": "cuda", "NUMBA_ENABLE_CUDASIM": str(int(where == "simulator"))}
    result = subprocess.run(
        [sys.executable, "-m", "pytest", *CONTRACTS, "-q", "-p", "no:cacheprovider"],
        cwd=ROOT, env=environment, text=True, capture_output=True, timeout=280, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stdout + result.stderr
    assert ("skipped" in result.stdout) == (where == "gpu"), "what one warp must do in order"


@pytest.fixture
def compiled(monkeypatch):
    """What gives the PTX of a kernel for compute capability 9.0, without a GPU."""
    pytest.importorskip("numba_cuda", reason="numba-cuda comes with daskw2v[cuda]")
    cuda, dispatcher, kernels = map(
        import_module, ("numba.cuda", "numba.cuda.dispatcher", "daskw2v.objectives.context_matrix.cuda")
    )

    class Hopper:
        compute_capability = 9, 0

    monkeypatch.setattr(dispatcher, "get_current_device", Hopper)  # asked for by functions that kernels call
    real, bits, number = cuda.types.float32[::1], cuda.types.uint64, cuda.types.int64
    signature = real, real, cuda.types.int32[:, ::1], bits[::1], real, bits, number, number, number, number, real

    def compile_kernel(width, negative, adam):
        function = kernels.compiled(width, negative, adam).py_func
        return cuda.compile_ptx(function, signature, fastmath=True, cc=(9, 0))[0]

    return compile_kernel


def linked(ptx):
    """What the linker says of a kernel's registers."""
    linker = pytest.importorskip("cuda.bindings.nvjitlink")
    code, link = ptx.encode(), linker.create(2, ["-arch=sm_90", "-verbose"])
    linker.add_data(link, linker.InputType.PTX, code, len(code), "kernel")
    linker.complete(link)
    told = bytearray(linker.get_info_log_size(link))
    linker.get_info_log(link, told)
    linker.destroy(link)
    return told.decode()


@pytest.mark.parametrize("adam", [True, False])
@pytest.mark.parametrize(("width", "negative"), [(112, 5), (512, 64), (1024, 5)])
def test_columns__keep_their_rows_in_registers(compiled, width, negative, adam):
    ptx = compiled(width, negative, adam)
    assert "ld.global.nc.v4" in ptx
    assert ".local" not in ptx
    assert "0 bytes spill stores, 0 bytes spill loads" in linked(ptx)


@pytest.mark.parametrize(("width", "negative"), [(4096, 5), (65536, 1024)])
def test_columns__are_compiled_for_rows_of_any_length(compiled, width, negative):
    assert "0 bytes gmem" in linked(compiled(width, negative, True))


def test_train__says_what_a_worker_lacks(tmp_path, client, monkeypatch):
    """Before any text is read: it is not there."""
    if has_gpu():
        pytest.skip("nothing is lacking")

    def on_cuda():
        train("no.txt", work=tmp_path, params=COLUMNS, resources=Resources(device="cuda", threads=1), client=client)

    if find_spec("numba_cuda") is not None:
        with pytest.raises(ClusterError, match=r"device='cuda' finds no GPU, or no driver, on .*device='cpu'"):
            on_cuda()
    monkeypatch.setitem(sys.modules, "numba_cuda", None)
    with pytest.raises(MissingExtraError, match=r"numba_cuda is not installed.*pip install 'daskw2v\[cuda\]'"):
        on_cuda()


def test_train__refuses_what_has_no_kernel_for_a_gpu(tmp_path):
    with pytest.raises(ParameterError, match=r"objective='sgns' has no kernel for device='cuda'"):
        train("no.txt", work=tmp_path, params=Params(), resources=Resources(device="cuda", threads=1))
