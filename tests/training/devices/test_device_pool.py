"""Trainers of one process share out its devices, and have theirs for life."""

import gc
from types import SimpleNamespace

import numpy as np
import pytest

from daskw2v.training.devices import gpu
from daskw2v.training.devices.gpu import CudaTrainer, DevicePool


class Trainer:
    pass


def test_device_pool__gives_the_device_that_fewest_hold():
    pool, trainers = DevicePool(), [Trainer() for _ in range(7)]
    assert [pool.assign(trainer, 3) for trainer in trainers] == [0, 1, 2, 0, 1, 2, 0]
    del trainers[1], trainers[3]  # both on the second device
    gc.collect()
    more = [Trainer() for _ in range(4)]
    assert [pool.assign(trainer, 3) for trainer in more] == [1, 1, 1, 2]


def test_device_pool__has_one_device_where_one_is_declared():
    pool, trainers = DevicePool(), [Trainer() for _ in range(3)]
    assert [pool.assign(trainer, 1) for trainer in trainers] == [0, 0, 0]


@pytest.mark.parametrize(("declared", "of"), [(1, [0, 0, 0]), (2, [0, 1, 0])])
def test_trainers__work_on_the_gpu_that_is_theirs(monkeypatch, declared, of):
    current = []

    class Gpu:
        def __init__(self, number):
            self._number = number

        def __enter__(self):
            current.append(self._number)

        def __exit__(self, *_):
            current.pop()

    modules = SimpleNamespace(gpu_at=Gpu, to_device=lambda values: (list(values), current[-1]))
    monkeypatch.setattr(gpu, "load", lambda name: modules)
    monkeypatch.setattr(gpu, "_POOL", DevicePool())
    monkeypatch.setattr(gpu, "count_declared_gpus", lambda: declared)
    trainers = [CudaTrainer() for _ in of]
    for trainer, number in [*zip(trainers, of, strict=True)] * 2:
        assert trainer.to_device(np.arange(2)) == ([0, 1], number)
        assert current == []
