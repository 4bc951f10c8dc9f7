"""CBOW with hierarchical softmax (Mikolov et al. 2013a)."""

from daskw2v.cuda import load
from daskw2v.objectives.base import Memory, Objective, Rate, Warps, initial_rows
from daskw2v.objectives.cbow_hs import cpu
from daskw2v.objectives.paths import Prepared, prepare_tree, tree_tables, way_scratch
from daskw2v.objectives.touched import touched_nodes
from daskw2v.objectives.windows import windows_of
from daskw2v.sampling.segments import Segment


def _train_cpu(
    segment: Segment, first: int, last: int, memory: Memory, rate: Rate, epoch: int, prepared: Prepared
) -> tuple[int, float]:
    params = prepared.params
    windows = windows_of(params, rate, epoch)
    trained, loss = cpu.train(
        segment, first, last, *memory, way_scratch(prepared, memory), windows, prepared.tree, params.cbow_mean
    )
    return int(trained), float(loss)


def _train_cuda(
    segment: Segment, first: int, last: int, memory: Warps, rate: Rate, epoch: int, prepared: Prepared
) -> None:
    params, cuda = prepared.params, load("daskw2v.objectives.cbow_hs.cuda")
    windows = windows_of(params, rate, epoch)
    cuda.train(segment, first, last, memory, windows, prepared.tree, prepared.depth, mean=params.cbow_mean)


CBOW_HS = Objective(
    "cbow_hs",
    {"sgd": 0.025},
    ("cbow_mean",),
    tree_tables,
    initial_rows,
    prepare_tree,
    {"cpu": _train_cpu, "cuda": _train_cuda},
    touched=touched_nodes,
    of_words=("input",),
)
