"""CBOW with hierarchical softmax (Mikolov et al. 2013a)."""

from functools import partial

from daskw2v.config.params import Params
from daskw2v.kernels.cuda import call
from daskw2v.objectives.base import Objective
from daskw2v.objectives.cbow_hs import cpu
from daskw2v.objectives.cpu.centers import train_by
from daskw2v.objectives.curvature import curvature_of_windows
from daskw2v.objectives.settings import CBOWHS
from daskw2v.objectives.touched import mark_reached_nodes, touched_nodes
from daskw2v.objectives.tree import prepare_tree, tree_bytes, tree_table_rows


def _cost(_: Params) -> float:
    """Return the cost of the kernel, d=100 (an Intel Xeon with AVX-512)."""
    return 1.1


CBOW_HS = Objective(
    name="cbow_hs",
    settings=CBOWHS,
    title="CBOW with hierarchical softmax",
    alphas={"sgd": 0.025},
    honours=("frozen_words", "maxn", "features"),
    tables=tree_table_rows,
    prepare=prepare_tree,
    prepared_bytes=tree_bytes,
    trainers={"cpu": partial(train_by, cpu.find_trainer), "cuda": partial(call, f"{__name__}.cuda", "train")},
    touched=touched_nodes,
    curvature=curvature_of_windows,
    reached=mark_reached_nodes,
    tables_by_word=("input",),
    cost=_cost,
    hot_rows=2048,
)
