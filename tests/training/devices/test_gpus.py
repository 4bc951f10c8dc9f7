"""GPUs shared out among workers, and their memory: on stand-ins, since machines that test have none."""

import ctypes
import logging
import math
import os
import pickle
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from types import SimpleNamespace

import pytest

from daskw2v import Params, Resources, train
from daskw2v.cluster import gpus
from daskw2v.cluster.connecting import connect
from daskw2v.cluster.gpus import count_declared_gpus, gpu_cluster_options, list_visible_gpus
from daskw2v.cluster.local import OneWorker
from daskw2v.errors import ClusterError
from daskw2v.training.averaging.replica import Replica, make_replica, train_replica
from daskw2v.training.columns.parts import train_part
from daskw2v.training.columns.subwords import find_gradients, make_rows
from daskw2v.training.devices import DEVICES, gpu
from daskw2v.training.devices.gpu import free_memory, gpu_memory_watched
from daskw2v.training.estimates.check import check_training, find_worker_kinds
from daskw2v.training.estimates.memory import estimate
from daskw2v.training.rotation.bucket_task import train_buckets
from daskw2v.training.sizes import Text

CUDA = Resources(device="cuda", threads=1)
TEXT = Text(
    words=10**6,
    types=2000,
    subsampled=10**6,
    vocabulary=1000,
    blocks=1,
    shards=1,
    shard_words=10**6,
    shard_types=2000,
    entries=2000,
)


def driver(count, starts=0, counts=0):
    """Return a stand-in for NVML, which returns an error's number or 0."""

    def count_gpus(answer):
        answer._obj.value = count
        return counts

    return SimpleNamespace(nvmlInit_v2=lambda: starts, nvmlDeviceGetCount_v2=count_gpus, nvmlShutdown=lambda: 0)


@pytest.fixture
def four_gpus(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(ctypes, "CDLL", lambda name: driver(4))


def refuse(name):
    raise OSError(f"{name}: cannot open shared object file")


def test_list_visible_gpus__are_all_where_none_is_named(four_gpus):
    assert list_visible_gpus() == ["0", "1", "2", "3"]


@pytest.mark.parametrize("library", [refuse, lambda _: driver(4, starts=9), lambda _: driver(4, counts=999)])
def test_list_visible_gpus__are_none_without_a_driver(monkeypatch, library):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(ctypes, "CDLL", library)
    assert list_visible_gpus() == []


@pytest.mark.parametrize(
    ("named", "gpus"),
    [
        ("2,3", ["2", "3"]),
        (" 1 , 0 ", ["1", "0"]),
        ("GPU-8932f937,MIG-5c89852c", ["GPU-8932f937", "MIG-5c89852c"]),
        ("1,-1,2", ["1"]),  # CUDA reads no further
        ("1,1", ["1"]),
        ("-1", []),
        ("", []),
    ],
)
def test_list_visible_gpus__are_those_that_the_user_named(four_gpus, monkeypatch, named, gpus):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", named)
    assert list_visible_gpus() == gpus


def what_is_seen(dask_worker):
    return os.environ.get("CUDA_VISIBLE_DEVICES"), dask_worker.state.total_resources


@pytest.mark.slow
def test_connect__gives_each_worker_a_gpu_of_its_own(four_gpus, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,1,2")
    with connect(CUDA.replace(workers=2), DEVICES["cuda"].local_cluster) as client:
        seen = client.run(what_is_seen)
        assert len(client.nthreads()) == 2
        assert sorted(seen.values()) == [("1", {"GPU": 1.0}), ("3", {"GPU": 1.0})]
        (dying, *_) = seen
        client.restart_workers([dying])  # what takes its place sees the same
        assert sorted(client.run(what_is_seen).values()) == [("1", {"GPU": 1.0}), ("3", {"GPU": 1.0})]
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "3,1,2"


@pytest.mark.parametrize(("named", "n"), [("0,1", 2), ("", 0)])
def test_connect__refuses_more_workers_than_gpus(monkeypatch, named, n):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", named)
    match = rf"workers=4 with device='cuda' needs a GPU for each worker, but .* sees {n}.*Give workers={n or 1}"
    with pytest.raises(ClusterError, match=match), connect(CUDA.replace(workers=4), DEVICES["cuda"].local_cluster):
        pass


def test_train__starts_a_local_cluster_as_its_device_asks(tmp_path, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    with pytest.raises(ClusterError, match=r"workers=3 with device='cuda' needs a GPU for each worker"):
        train(write_text(tmp_path), work=tmp_path, resources=CUDA.replace(workers=3), listener=None)


def write_text(folder):
    (folder / "text.txt").write_text("a b\n")
    return folder / "text.txt"


def test_connect__leaves_it_to_one_worker_to_say_that_there_is_no_gpu(monkeypatch):
    monkeypatch.setattr(gpus, "list_visible_gpus", list)
    assert gpu_cluster_options(1) == {"resources": {"GPU": 1}}


def test_connect__trains_on_all_gpus_in_this_process(four_gpus):
    with connect(CUDA, DEVICES["cuda"].local_cluster) as client:
        assert isinstance(client.cluster, OneWorker)
        assert [worker.state.total_resources for worker in client.cluster.workers.values()] == [{"GPU": 4}]
        assert client.submit(count_declared_gpus).result() == 4
        assert client.run(lambda dask_worker: count_declared_gpus(dask_worker)) == dict.fromkeys(client.nthreads(), 4)
    assert count_declared_gpus() == 1, "outside of tasks"


def test_tasks__are_one_for_a_gpu_and_one_for_each_thread_of_a_processor():
    assert [DEVICES[name].tasks(4) for name in ("cpu", "cuda")] == [4, 1]


def test_connect__needs_no_gpu_where_one_is_simulated(monkeypatch):
    monkeypatch.setattr(gpus.numba.config, "ENABLE_CUDASIM", 1)
    monkeypatch.setattr(gpus, "list_visible_gpus", list)
    assert gpu_cluster_options(4) == {"resources": {"GPU": 1}}


@pytest.mark.parametrize("strategy", ["averaging", "rotation", "columns"])
def test_check_training__refuses_what_a_gpu_cannot_hold(client, monkeypatch, strategy):
    objective = "context_matrix" if strategy == "columns" else "sgns"
    params = Params(objective=objective, strategy=strategy)
    (kind,) = find_worker_kinds(client, "cpu")
    need = estimate(params, CUDA, TEXT, kind)["train"].gpu_bytes
    for free, fits in ((need, True), (math.inf, True), (need - 1, False)):
        monkeypatch.setitem(
            DEVICES, "cuda", replace(DEVICES["cuda"], check=None, free_memory=lambda free=free: float(free))
        )
        if fits:
            check_training(client, params, CUDA, TEXT)
            continue
        match = r"Training takes about .* in the memory of a GPU \(.*\), and .* free there\. Give workers GPUs with"
        with pytest.raises(ClusterError, match=match) as caught:
            check_training(client, params, CUDA, TEXT)
    assert "that nothing else uses, by their numbers in CUDA_VISIBLE_DEVICES; or " in caught.value.remedy
    assert "vector_size=50, which takes" in caught.value.remedy


def test_free_memory__is_that_after_what_was_let_go(monkeypatch):
    free = [5]
    context = SimpleNamespace(
        memory_manager=SimpleNamespace(deallocations=SimpleNamespace(clear=lambda: free.append(7))),
        get_memory_info=lambda: SimpleNamespace(free=free[-1], total=9),
    )
    entered = []

    @contextmanager
    def entering(number):
        entered.append(number)
        yield

    cuda = SimpleNamespace(current_context=lambda: context, gpus=[entering(number) for number in range(3)])
    monkeypatch.setattr(gpu, "load", lambda name: cuda)
    assert (free_memory(), entered) == (7.0, [0])
    free.append(5)
    monkeypatch.setattr(gpu, "count_declared_gpus", lambda worker: {"two": 2}.get(worker, 1))
    cuda.gpus = [entering(number) for number in range(3)]
    context.get_memory_info = lambda: SimpleNamespace(free=10 - entered[-1])
    assert (free_memory("two"), entered) == (9.0, [0, 0, 1]), "that of the GPU with the least"
    monkeypatch.setattr(gpu.numba.config, "ENABLE_CUDASIM", 1)
    assert free_memory() == math.inf


def test_gpu_memory_watched__explains_what_numba_raises(monkeypatch):
    pytest.importorskip("numba_cuda", reason="it comes with daskw2v[cuda]")
    codes = pytest.importorskip("cuda.bindings.driver").CUresult
    driver = import_module("numba.cuda.cudadrv.driver")
    monkeypatch.setattr(driver, "_logger", logging.getLogger("cuda"), raising=False)  # set where there is a driver
    refused = driver.Driver._check_cuda_python_error
    with pytest.raises(ClusterError, match=r"memory of a GPU is full on .*cuMemAlloc.*one worker a GPU"):
        full(refused, codes.CUDA_ERROR_OUT_OF_MEMORY)
    with pytest.raises(driver.CudaAPIError):
        full(refused, codes.CUDA_ERROR_ILLEGAL_ADDRESS)


def test_gpu_memory_watched__explains_what_pytorch_raises(torch):
    with pytest.raises(ClusterError, match=r"memory of a GPU is full on .*CUDA out of memory"), gpu_memory_watched():
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB.")


@gpu_memory_watched()
def full(refused, code):
    refused(SimpleNamespace(), "cuMemAlloc", (code, 0))


RUN = SimpleNamespace(device="cuda", params=Params(), work=None, corpus=None, vocabulary=None)
PARTS = SimpleNamespace(run=RUN, words=[(0, 1)])


@pytest.mark.parametrize(
    ("task", "opens", "args"),
    [
        (make_replica, "find_objective", (RUN, None, [], None, {})),
        (train_replica, "find_objective", (Replica(RUN, None, [], None), [None], {}, [None])),
        (train_buckets, "find_objective", ([], {}, {}, None, PARTS, 1)),
        (train_part, "open_part", (PARTS, 0, [], {}, {}, 1)),
        (find_gradients, "read_characters", (PARTS, [None], None, None, [])),
        (make_rows, "cut_range", (PARTS, 0, None)),
    ],
)
def test_tasks_on_a_device__watch_its_memory(monkeypatch, task, opens, args):
    def fail(*_):
        raise RuntimeError("[2] Call to cuMemAlloc results in CUDA_ERROR_OUT_OF_MEMORY")

    module = import_module(task.__module__)
    monkeypatch.setattr(module, opens, fail)
    monkeypatch.setattr(module, "open_text", lambda *_: None, raising=False)
    keywords = {"keep_losses": False} if task is train_part else {}
    with pytest.raises(ClusterError, match="memory of a GPU is full"):
        task(*args, **keywords)
    assert pickle.loads(pickle.dumps(task)) is task, "Dask finds it by its name"
