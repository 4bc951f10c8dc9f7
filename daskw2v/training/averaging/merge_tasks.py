"""The tasks that merge a block of the model: a small tree of them."""

from distributed import Client, Future

from daskw2v.cluster.shared_memory import share
from daskw2v.training.averaging.deltas import Delta, Deltas, add_deltas, join_deltas
from daskw2v.training.averaging.merge import (
    FAN_IN,
    MergedBlock,
    MergeRule,
    find_merge_rule,
    merge_block,
    merge_deltas,
    merged_block,
)
from daskw2v.types import Float32Array


def submit_merge(
    client: Client, rule: MergeRule, length: int, before: Future, trained: list[Future], key: str
) -> Future:
    """Return the future of a `MergedBlock`, by a tree whose shape depends on the number of replicas only."""
    if len(trained) <= FAN_IN:
        return client.submit(_merge_few, rule.name, before, *trained, key=f"merge-{key}")
    parts = [
        client.submit(_add_some, length, *trained[i : i + FAN_IN], key=f"deltas-{key}-{i}")
        for i in range(0, len(trained), FAN_IN)
    ]
    level = 0
    while len(parts) > 1:
        parts = [
            client.submit(_join, *parts[i : i + FAN_IN], key=f"join-{key}-{level}-{i}")
            for i in range(0, len(parts), FAN_IN)
        ]
        level += 1
    return client.submit(_merge_sum, rule.name, before, parts[0], key=f"merge-{key}")


def _add_some(length: int, *deltas: Delta) -> Deltas:
    return _shared(add_deltas(length, *deltas))


def _join(*parts: Deltas) -> Deltas:
    return _shared(join_deltas(*parts))


def _shared(deltas: Deltas) -> Deltas:
    return deltas._replace(total=share(deltas.total))


def _merge_few(rule: str, before: MergedBlock | Float32Array, *deltas: Delta) -> MergedBlock:
    return merge_deltas(find_merge_rule(rule), merged_block(before), deltas).shared()


def _merge_sum(rule: str, before: MergedBlock | Float32Array, deltas: Deltas) -> MergedBlock:
    def deltas_of(rows: slice) -> Deltas:
        return deltas._replace(total=deltas.total[rows], changed=deltas.changed[rows])

    return merge_block(find_merge_rule(rule), merged_block(before), deltas_of).shared()
