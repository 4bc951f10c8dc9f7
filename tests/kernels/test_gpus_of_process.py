"""GPUs that threads share: on stand-ins for Numba's, since machines that test have none."""

import time
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from types import SimpleNamespace

import pytest


class Released:
    """What Numba keeps until it releases it, by whatever thread comes."""

    def __init__(self, current):
        self._current, self.at = current, []

    def clear(self):
        self.at.append(self._current[-1] if self._current else None)


class Gpu:
    """A GPU and its context, of a machine where only neighbours have a link."""

    def __init__(self, number, current, raised):
        self.id, self.handle, self._current, self._raised = number, f"context {number}", current, raised
        self.deallocations, memory = Released(current), Released(current)
        self.memory_manager = SimpleNamespace(deallocations=memory)
        self.reached = []

    def __enter__(self):
        self._current.append(self.id)

    def __exit__(self, *_):
        self._current.pop()

    def can_access_peer(self, other):
        return abs(other - self.id) == 1

    def enable_peer_access(self, context):
        assert self._current[-1] == self.id
        self.reached.append(context)
        if self._raised:
            raise RuntimeError(self._raised)


class Library:
    """A compiled kernel, which two threads must not load at a time."""

    loading = most = 0

    def get_cufunc(self):
        Library.loading += 1
        time.sleep(0.02)
        Library.most, Library.loading = max(Library.most, Library.loading), Library.loading - 1
        return "loaded"


@pytest.fixture
def machine(monkeypatch):
    """A function that makes a machine of three GPUs, and the module that makes them ready."""
    pytest.importorskip("numba_cuda", reason="numba-cuda comes with daskw2v[cuda]")
    module = import_module("daskw2v.kernels.cuda.gpus")

    def make(raised=""):
        current = []
        gpus = [Gpu(number, current, raised) for number in range(3)]
        driver = SimpleNamespace(CudaAPIError=RuntimeError)
        cuda = SimpleNamespace(
            gpus=gpus, current_context=lambda: gpus[current[-1]], cudadrv=SimpleNamespace(driver=driver)
        )
        monkeypatch.setattr(module, "cuda", cuda)
        monkeypatch.setattr(module, "load", lambda name: SimpleNamespace(CUDACodeLibrary=Library))
        module._serialize_loading.cache_clear()
        module._release_in_context.cache_clear()
        module._enable_peer_copies.cache_clear()
        return module, gpus

    yield make
    module._serialize_loading.cache_clear()
    module._release_in_context.cache_clear()
    module._enable_peer_copies.cache_clear()


def test_gpu__releases_memory_in_its_own_context_whoever_lets_go(machine):
    module, gpus = machine()
    for number in (0, 1, 1):
        assert module.gpu_at(number) is gpus[number]
    for gpu in gpus[:2]:
        for released in (gpu.deallocations, gpu.memory_manager.deallocations):
            released.clear()
            with gpus[2]:
                released.clear()
            assert released.at == [gpu.id, gpu.id]
    gpus[2].deallocations.clear()
    assert gpus[2].deallocations.at == [None], "or this tests nothing"


@pytest.mark.parametrize(
    ("n", "reached"),
    [
        (1, [[], [], []]),
        (2, [["context 1"], ["context 0"], []]),
        (3, [["context 1"], ["context 0", "context 2"], ["context 1"]]),
    ],
)
def test_gpu__reaches_those_that_it_has_a_link_to_once(machine, n, reached):
    module, gpus = machine()
    for number in [*range(n)] * 2:
        module.gpu_at(number)
    assert [gpu.reached for gpu in gpus] == reached


def test_gpu__goes_on_where_others_are_reached_already(machine):
    module, gpus = machine("[704] Call to cuCtxEnablePeerAccess results in CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED")
    assert module.gpu_at(1) is gpus[1]
    module, _ = machine("[2] Call to cuCtxEnablePeerAccess results in CUDA_ERROR_OUT_OF_MEMORY")
    with pytest.raises(RuntimeError, match="OUT_OF_MEMORY"):
        module.gpu_at(1)


def test_kernels__are_loaded_by_one_thread_at_a_time(machine):
    """Numba looks whether a kernel is loaded, and loads it, without a lock."""
    module, _ = machine()
    module.gpu_at(0)
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda _: Library().get_cufunc(), range(4))) == ["loaded"] * 4
    assert Library.most == 1
