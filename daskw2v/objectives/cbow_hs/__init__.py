"""CBOW with hierarchical softmax (Mikolov et al. 2013a)."""

from typing import Any

from daskw2v.kernels.cuda import load
from daskw2v.objectives.base import DeviceTables, Objective, Rate, Tables, initial_rows
from daskw2v.objectives.cbow_hs import cpu
from daskw2v.objectives.cpu.targets import path_scratch
from daskw2v.objectives.curvature import curvature_of_windows
from daskw2v.objectives.settings import CBOWHS
from daskw2v.objectives.touched import reached_nodes, touched_nodes
from daskw2v.objectives.tree import PreparedTree, prepare_tree, tree_bytes, tree_tables
from daskw2v.objectives.windows import windows_of
from daskw2v.sampling.segments import Segment


def _train_cpu(
    segment: Segment, first: int, last: int, tables: Tables, rate: Rate, epoch: int, prepared: PreparedTree
) -> tuple[int, float]:
    params = prepared.params
    windows = windows_of(params, rate, epoch)
    train, scratch = cpu.compiled(CBOWHS.of(params).cbow_mean), path_scratch(prepared, tables)
    trained, loss = train(segment, first, last, tables, scratch, windows, prepared.tree, ())
    return int(trained), float(loss)


def _train_cuda(
    segment: Segment, first: Any, last: Any, tables: DeviceTables, rate: Rate, epoch: int, prepared: PreparedTree
) -> int:
    params, cuda = prepared.params, load("daskw2v.objectives.cbow_hs.cuda")
    windows, mean = windows_of(params, rate, epoch), CBOWHS.of(params).cbow_mean
    return int(cuda.train(segment, first, last, tables, windows, prepared.tree, prepared.depth, mean=mean))


CBOW_HS = Objective(
    name="cbow_hs",
    settings=CBOWHS,
    title="CBOW with hierarchical softmax",
    alphas={"sgd": 0.025},
    honours=("frozen_words", "maxn", "features"),
    tables=tree_tables,
    initial=initial_rows,
    prepare=prepare_tree,
    prepared_bytes=tree_bytes,
    trainers={"cpu": _train_cpu, "cuda": _train_cuda},
    touched=touched_nodes,
    curvature=curvature_of_windows,
    reached=reached_nodes,
    of_words=("input",),
    hot_rows=2048,
)
