"""Settings of devices, and settings of strategies that devices read."""

from dataclasses import dataclass

from daskw2v.config.choice import Choice, Choices, TrainingChoice
from daskw2v.config.settings import integer, setting


@dataclass(frozen=True, kw_only=True)
class Replicated(TrainingChoice):
    """A strategy that trains replicas of the model."""

    axis = "strategy"

    n_replicas: int | None = setting(
        None,
        "replicas of the model that train in parallel; when not given, as many as are forecast to be fastest",
        integer(1, 65536),
        stage="train",
        plain=1,
    )

    @property
    def replicas(self) -> int:
        """`n_replicas`, or 1 where it is not chosen yet."""
        return self.n_replicas or 1


@dataclass(frozen=True, kw_only=True)
class _WithHotRows(Choice):
    """A device that treats the most used rows differently from other rows."""

    axis = "device"

    hot_rows: int | None = setting(
        None,
        "most used rows: on cpu each of several threads trains its own copy of them, as many as suit objective and "
        "threads when not given; on cuda no warp keeps a copy of them from window to window, 0 when not given",
        integer(0, 4096),
        honoured_by=("strategy",),
    )


@dataclass(frozen=True, kw_only=True)
class CPU(_WithHotRows):
    """The cores of the workers.

    Raises
    ------
    ParameterError
        If a value is outside its range; the message names field, value and range.

    Examples
    --------
    >>> resources = daskw2v.Resources(device=daskw2v.CPU(hot_rows=64))
    >>> resources == daskw2v.Resources(hot_rows=64)
    True
    """

    name = "cpu"


@dataclass(frozen=True, kw_only=True)
class Cuda(_WithHotRows):
    """The GPU of each worker, by CUDA.

    Raises
    ------
    ParameterError
        If a value is outside its range; the message names field, value and range.

    Examples
    --------
    >>> resources = daskw2v.Resources(device=daskw2v.Cuda(max_in_flight=512))
    >>> resources == daskw2v.Resources(device="cuda", max_in_flight=512)
    True
    """

    name = "cuda"

    max_in_flight: int | None = setting(
        None,
        "most warps of a GPU that train at the same time, each on 256 centers or more; as many as there is room for "
        "when not given",
        integer(1, 65536),
        honoured_by=("strategy",),
    )


DEVICES = Choices("device", "daskw2v.devices", CPU, Cuda)
