"""Devices, on which kernels run: a device takes rows, trains them, and returns them.

The registry of devices is here. A device of this package is a module beside this one, and a line below.
"""

from distributed import Client

from daskw2v.cluster.waiting import await_worker
from daskw2v.cluster.workers import Trainers, ask_workers, find_trainers, may_grow
from daskw2v.config.choice import refuse_unread
from daskw2v.config.params import Params
from daskw2v.config.registry import Registry
from daskw2v.config.resources import Resources
from daskw2v.errors import ClusterError, Daskw2vError
from daskw2v.objectives.registry import find_objective
from daskw2v.training.devices.base import DeviceRows, PartitionTrainer, RowTrainer, Threads, threads_of
from daskw2v.training.devices.cpu import CPU
from daskw2v.training.devices.device import Device
from daskw2v.training.devices.gpu import CUDA
from daskw2v.training.devices.replica_trainer import ReplicaTrainer, SomeRows, TextPiece, TextTotals, read_piece

__all__ = [
    "CPU",
    "CUDA",
    "DEVICES",
    "Device",
    "DeviceRows",
    "PartitionTrainer",
    "ReplicaTrainer",
    "RowTrainer",
    "SomeRows",
    "TextPiece",
    "TextTotals",
    "Threads",
    "check_device",
    "check_workers",
    "find_device",
    "read_piece",
    "threads_of",
    "trainers_of",
]


DEVICES = Registry("device", "daskw2v.devices", Device, {device.name: device for device in (CPU, CUDA)})


def find_device(name: str) -> Device:
    """Return the device of that name, or raise a ParameterError that lists them."""
    return DEVICES.find(name)


def check_device(params: Params, resources: Resources) -> None:
    """Refuse settings that the device of these Resources would not read.

    Raises
    ------
    ParameterError
        If the device does not exist, or an option of others is set.
    """
    for settings in (params, resources):
        refuse_unread(settings, "device", resources.device.name, DEVICES.including(resources.device.name))


def trainers_of(client: Client, device: str | None) -> Trainers:
    """Return the workers that train on a device: those that declare its resource, or all where none does.

    All workers are returned where no device is named. The call waits for one worker; where workers may still come and
    the present ones cannot train, it waits for one that declares the resource.

    Raises
    ------
    ClusterError
        If none has come in time.
    """
    await_worker(client)
    if device is None:
        return find_trainers(client, None)
    chosen = find_device(device)
    trainers = find_trainers(client, chosen.resource)
    if chosen.check is None or chosen.resource is None or trainers.task_resources or not may_grow(client):
        return trainers
    try:
        ask_workers(client, _lacking, device, workers=trainers.threads)
    except ClusterError as error:
        await_worker(client, {chosen.resource: 1}, error.problem)
        return find_trainers(client, chosen.resource)
    return trainers


def check_workers(client: Client, device: str, objective: str) -> None:
    """Check that workers that train on a device can train an objective; raise the error of a `check` on one of them."""
    if find_device(device).check is not None or find_objective(objective).check is not None:
        ask_workers(client, _lacking, device, objective, workers=trainers_of(client, device).threads)


def _lacking(device: str, objective: str | None = None) -> Daskw2vError | None:
    """Return the error for which this process cannot train on a device; Dask would log one that is raised."""
    chosen = find_device(device)
    check_objective = find_objective(objective).check if objective is not None else None
    try:
        if chosen.check is not None:
            chosen.check()
        if check_objective is not None:
            check_objective(chosen.torch_device())
    except Daskw2vError as error:
        return error
    return None
