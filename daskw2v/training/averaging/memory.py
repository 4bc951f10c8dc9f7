"""Estimates of the memory of replicas."""

from collections.abc import Sequence

from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.features.settings import features_bytes
from daskw2v.objectives.noise import has_markets
from daskw2v.objectives.registry import find_objective
from daskw2v.training.averaging.round_schedule import given_rows, most_steps
from daskw2v.training.averaging.settings import Averaging
from daskw2v.training.devices import find_device
from daskw2v.training.sizes.memory import (
    LONG,
    RunMemory,
    Sizes,
    StageMemory,
    Workers,
    open_shards,
    publish,
    table_bytes,
)
from daskw2v.training.sizes.text import Text

_BUILDING = 8 * LONG  # bytes a word of the input of an alias table


def task_threads(threads: Sequence[int], params: Params, resources: Resources) -> int:
    """Return the threads of a training task: replicas share the workers', and a task stays on one worker."""
    largest = max(threads, default=1)
    most = min(resources.threads or largest, largest)
    return max(1, min(most, sum(threads) // Averaging.of(params).n_replicas))


def run_memory(params: Params, resources: Resources, text: Text, workers: Workers) -> RunMemory:
    """Return the memory of a run."""
    return RunMemory(_train(params, resources, text, workers), publish(params, resources, text, workers))


def _train(params: Params, resources: Resources, text: Text, workers: Workers) -> StageMemory:
    """Return the memory of replicas: the model they start from, their own tables, what they return; and merging.

    Replicas that pull rows have less.
    """
    device = find_device(resources.device.name)
    trainer = device.replica_trainer
    held, own = table_bytes(params, text.vocabulary)
    tables, copies = sum(held.values()), sum(own.values())
    threads = task_threads([workers.threads] * workers.n, params, resources)
    replicas = -(-Averaging.of(params).n_replicas // workers.n)
    tasks = min(workers.tasks(device.resource), replicas)
    several = Averaging.of(params).n_replicas > 1
    share = tables / workers.n if several else 0.0
    changes = tables / 2  # of a replica, in half the bytes
    steps = most_steps(params, text.words, text.vocabulary)
    rows_given = given_rows(params, text.vocabulary, steps)
    often = sum(rows * times for rows, times in rows_given) / text.vocabulary
    prepared = find_objective(params.objective.name).prepared_bytes(params, text.vocabulary)
    kept: Sizes = {
        "model": tables,
        **prepared,
        **features_bytes(params, text.vocabulary),
        "counts and thresholds": 2 * LONG * text.vocabulary,
        "open shards": open_shards(text),
    }
    read = trainer.text_bytes(threads, text.words)
    # One table is taken out after the other; rows that fill whole cache lines are returned as they lie
    taken = max(held.values()) / tables
    alone = {
        **kept,
        "tables of replicas": copies,
        "rows taken out of them": 0.0 if copies == tables else taken * tables,
        "text": read,
    }
    # Replicas stay on their workers until a round ends, and so do all merged rows that they took. Merged rows replace
    # the changes that they came from, but for some blocks.
    round_of_several = {
        **kept,
        "tables of replicas": replicas * copies,
        "changes of replicas": replicas * changes,
        "rows given in a round": often * tables,
        "blocks that are merged": share / 2,
        "text": tasks * read,
    }
    building = _BUILDING * (2 if has_markets(params) else 1) + 3 * LONG
    preparing = {"model": tables, "building what kernels read": building * text.vocabulary}
    gpu: Sizes = {}
    if device.free_memory:
        crowd = -(-replicas // workers.devices)  # replicas of a device
        # A round of one replica begins with the rows that the round before left there
        gpu = {
            "tables": (crowd if several else 1) * copies,
            "rows of the round before": copies,
            **prepared,
            "text": trainer.device_text_bytes(threads, text.words),
        }
    rounds = (round_of_several,) if several else ()
    return StageMemory.of("train", alone, *rounds, preparing, gpu=gpu)
