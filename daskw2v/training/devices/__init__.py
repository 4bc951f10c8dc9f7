"""Devices, on which kernels run, and their registry.

A device of this package is a module beside this one, and a line below.
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
from daskw2v.training.devices.base import DeviceRows, PartitionTrainer, RowTrainer, Threads
from daskw2v.training.devices.cpu import CPU
from daskw2v.training.devices.device import Device
from daskw2v.training.devices.gpu import CUDA
from daskw2v.training.devices.replica_trainer import ReplicaTrainer, SomeRows, TextPiece, TextTotals, read_piece

__all__ = ["CPU", "CUDA", "Device", "DeviceRows", "PartitionTrainer", "ReplicaTrainer", "RowTrainer"]
__all__ += ["SomeRows", "TextPiece", "TextTotals", "Threads", "read_piece"]


DEVICES = Registry("device", "daskw2v.devices", Device, {device.name: device for device in (CPU, CUDA)})


def find_device(name: str) -> Device:
    """Return the device of this name, or raise a ParameterError that lists all names."""
    return DEVICES.find(name)


def check_device(params: Params, resources: Resources) -> None:
    """Raise a ParameterError if the device of these Resources does not exist, or does not read a setting."""
    for settings in (params, resources):
        refuse_unread(settings, "device", resources.device.name, DEVICES.including(resources.device.name))


def find_device_trainers(client: Client, device: str | None) -> Trainers:
    """Return the workers that train on the device of this name: those that declare its resource, or all if none does.

    All workers are returned for None. The call waits for one worker; where workers may still come and the present ones
    cannot train, it waits for a worker that declares the resource.

    Raises
    ------
    ClusterError
        If no such worker has come in time.
    ParameterError, MissingExtraError
        If there is no such device; or if a present worker lacks its optional dependency.
    """
    await_worker(client)
    if device is None:
        return find_trainers(client, None)
    chosen = find_device(device)
    trainers = find_trainers(client, chosen.resource)
    if chosen.check is None or chosen.resource is None or trainers.task_resources or not may_grow(client):
        return trainers
    try:
        ask_workers(client, _find_problem, device, workers=trainers.threads)
    except ClusterError as error:
        await_worker(client, {chosen.resource: 1}, error.problem)
        return find_trainers(client, chosen.resource)
    return trainers


def check_workers(client: Client, device: str, objective: str) -> None:
    """Raise the error of a worker that cannot train an objective on a device, by the `check` of either."""
    if find_device(device).check is not None or find_objective(objective).check is not None:
        ask_workers(client, _find_problem, device, objective, workers=find_device_trainers(client, device).threads)


def _find_problem(device: str, objective: str | None = None) -> Daskw2vError | None:
    """Return the error for which this process cannot train on a device, or None. Dask would log a raised error."""
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
