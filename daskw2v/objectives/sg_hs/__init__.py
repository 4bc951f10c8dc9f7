"""Skip-gram with hierarchical softmax (Mikolov et al. 2013a; Vuurens et al. 2016)."""

from functools import partial

import numpy as np

from daskw2v.config.params import Params
from daskw2v.kernels.cuda import call
from daskw2v.objectives.base import DeviceTables, Objective, Tables
from daskw2v.objectives.cpu.centers import train_by
from daskw2v.objectives.settings import SkipGramHS
from daskw2v.objectives.sg_hs import cpu
from daskw2v.objectives.sg_hs.buckets import cpu as buckets
from daskw2v.objectives.touched import mark_reached_nodes, nodes_in_partition, touched_nodes
from daskw2v.objectives.tree import make_linked_trees, prepare_tree, tree_bytes, tree_table_rows
from daskw2v.sampling.skipgrams import Bucket
from daskw2v.types import UInt64Array


def _train_bucket_cpu(
    bucket: Bucket, tables: Tables, alpha: float, params: Params, links: UInt64Array, key: np.uint64
) -> tuple[int, float]:
    """Train a bucket on the CPU, as `BucketTrainer` does."""
    return buckets.train_bucket(bucket.pairs, tables, alpha, links)


def _train_bucket_cuda(
    bucket: Bucket, tables: DeviceTables, alpha: float, params: Params, links: UInt64Array, key: np.uint64
) -> None:
    """Train a bucket on a GPU, as `BucketTrainer` does."""
    call(f"{__name__}.buckets.cuda", "train_bucket", bucket.pairs, tables, alpha, links)


def _cost(_: Params) -> float:
    """Return the cost of the kernel, d=100 (an Intel Xeon with AVX-512)."""
    return 2.0


SG_HS = Objective(
    name="sg_hs",
    settings=SkipGramHS,
    title="skip-gram with hierarchical softmax",
    alphas={"sgd": 0.025},
    honours=("frozen_words", "maxn", "features"),
    tables=tree_table_rows,
    prepare=prepare_tree,
    prepared_bytes=tree_bytes,
    trainers={"cpu": partial(train_by, cpu.find_trainer), "cuda": partial(call, f"{__name__}.cuda", "train")},
    bucket_trainers={"cpu": _train_bucket_cpu, "cuda": _train_bucket_cuda},
    partition_table=make_linked_trees,
    touched=touched_nodes,
    targets_in_partition=nodes_in_partition,
    reached=mark_reached_nodes,
    flush_words=256,
    tables_by_word=("input",),
    cost=_cost,
)
