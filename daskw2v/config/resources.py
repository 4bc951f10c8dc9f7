"""`Resources`: the settings that do not change the vectors."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from numbers import Real
from typing import Any

from dask.utils import parse_bytes

from daskw2v.config.choice import Choice, WithChoices, axis
from daskw2v.config.settings import (
    ADDRESS,
    FLAG,
    LOCATION,
    OPTIONS,
    URL,
    URLS,
    Constraint,
    integer,
    is_number,
    number,
    setting,
)

LOCAL = ("workers", "processes", "memory_limit", "host")  # fields that only describe a local cluster


def _is_size(value: Any) -> bool:
    try:
        is_given = bool(value.strip()) if isinstance(value, str) else is_number(value, Real)
        return is_given and parse_bytes(_plain_size(value)) > 0
    except (ValueError, OverflowError):
        return False


def _plain_size(size: Any) -> str | int:
    """Return text unchanged, and a number, such as NumPy's, as an int."""
    return size if isinstance(size, str) else int(size)


SIZE = Constraint(_is_size, "a size in bytes, as a number or as text such as '32 MiB'", _plain_size)
MEMORY = Constraint(
    lambda v: (isinstance(v, str) and v == "auto") or _is_size(v),
    "'auto' or a size in bytes, as a number or as text such as '4 GiB'",
    _plain_size,
)


@dataclass(frozen=True, kw_only=True, init=False)
class Resources(WithChoices):
    """Everything that must not change the vectors: the cluster, its threads and memory, stores, and logs.

    More than one thread in a training task of `averaging` is the exception (Hogwild): results are then statistically,
    not bitwise, the same. And the strategy that `auto` chooses depends on the workers.

    Raises
    ------
    ParameterError
        If a value is outside its range; the message names field, value and range.

    Examples
    --------
    >>> resources = daskw2v.Resources(workers=2, threads=4, memory_limit="8 GiB")
    >>> resources.replace(workers=4).workers
    4
    >>> daskw2v.Resources(device=daskw2v.Cuda(max_in_flight=512)) == daskw2v.Resources(device="cuda", max_in_flight=512)
    True
    """

    storage_options: Mapping[str, Any] = setting(
        {}, "options for fsspec (credentials, endpoints)", OPTIONS, secret=True, heading="Input"
    )
    keep_inputs: bool = setting(
        True,
        "keep text that was in no file (a collection or an iterable, in Python) in the work directory after a run",
        FLAG,
        honoured_by=("input",),
    )
    eval_every: int | None = setting(
        None,
        "rounds or passes between evaluations; only the last is evaluated when not given",
        integer(1),
        heading="Training",
    )
    eval_similarity: tuple[str, ...] = setting((), "word pairs with human scores, to evaluate training on", URLS)
    eval_analogy: tuple[str, ...] = setting((), "analogy questions, to evaluate training on", URLS)
    eval_categorization: tuple[str, ...] = setting((), "words with classes, to evaluate training on", URLS)
    word_losses: bool = setting(
        False, "keep the loss of every word in every step beside the model", FLAG, honoured_by=("strategy",)
    )
    mlflow: str | None = setting(
        None,
        "tracking URI of the MLflow that training is logged to, such as https://mlflow.example; the "
        "experiment is that of MLFLOW_EXPERIMENT_NAME, or daskw2v",
        URL,
    )
    tensorboard: str | None = setting(None, "folder that training is logged to for TensorBoard", LOCATION)
    stage: bool = setting(
        False, "finish the version without serving it: `daskw2v versions promote` does so later, after a check", FLAG
    )
    device: Choice = axis("cpu", "what kernels run on", "daskw2v.training.devices.settings:DEVICES", heading="Cluster")
    scheduler: str | None = setting(
        None, "address of a Dask scheduler, such as tcp://host:8786; a local cluster when not given", ADDRESS
    )
    host: str | None = setting(
        None,
        "address that a local cluster listens on, for workers elsewhere to join; this machine alone when not given. "
        "Whoever reaches it can run code on it, unless Dask is configured to use TLS",
        ADDRESS,
    )
    workers: int = setting(
        1, "workers of a local cluster; with device cuda, each has a GPU of its own", integer(1, 4096)
    )
    processes: bool | None = setting(
        None,
        "whether local workers are processes of their own, which are started again when they die; when not given, only "
        "several are, or one with a memory_limit or a host, or with max_bad_blocks",
        FLAG,
    )
    threads: int | None = setting(
        None, "threads of each worker, and of a training task; all cores when not given", integer(1, 4096)
    )
    memory_limit: str | int = setting("auto", "memory of each local worker, such as '4 GiB'", MEMORY)
    block_size: str | int = setting("64 MiB", "text read by one task and held by one shard", SIZE)
    checkpoint_seconds: float = setting(
        60.0, "seconds between checkpoints; 0 writes one a round", number(0), heading="Faults"
    )
    worker_timeout: float | None = setting(
        None,
        "seconds to wait for a worker, at the start and while all are gone; 3600 when not given, but 300 on a local "
        "cluster that is not adaptive",
        number(0, open_low=True),
    )
    store_timeout: float = setting(
        300.0,
        "seconds to wait for an answer of a store; what fails or takes longer is retried four times",
        number(0, open_low=True),
    )

    _is_part = False

    @property
    def local_cluster(self) -> dict[str, Any]:
        """The values, by name, of the fields in `LOCAL` that differ from their defaults."""
        values = {f.name: getattr(self, f.name) for f in fields(self) if f.name in LOCAL}
        return {name: value for name, value in values.items() if value != getattr(Resources, name)}

    @property
    def eval_sets(self) -> dict[str, tuple[str, ...]]:
        """The URLs of the sets to evaluate training on, by kind: similarity, analogy and categorization."""
        kinds = ("similarity", "analogy", "categorization")
        return {kind: getattr(self, f"eval_{kind}") for kind in kinds}

    @property
    def block_bytes(self) -> int:
        """Size of a block of text in bytes, from `block_size`."""
        return int(parse_bytes(self.block_size))
