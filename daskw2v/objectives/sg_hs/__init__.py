"""Skip-gram with hierarchical softmax (Mikolov et al. 2013a; Vuurens et al. 2016)."""

from daskw2v.objectives.base import Memory, Objective, Rate, initial_rows
from daskw2v.objectives.paths import Prepared, prepare_tree, tree_tables, way_scratch
from daskw2v.objectives.sg_hs import cpu
from daskw2v.objectives.windows import windows_of
from daskw2v.sampling.segments import Segment


def _train_cpu(
    segment: Segment, first: int, last: int, memory: Memory, rate: Rate, epoch: int, prepared: Prepared
) -> tuple[int, float]:
    windows = windows_of(prepared.params, rate, epoch)
    pairs, loss = cpu.train(segment, first, last, *memory, way_scratch(prepared, memory), windows, prepared.tree)
    return int(pairs), float(loss)


SG_HS = Objective("sg_hs", {"sgd": 0.025}, (), tree_tables, initial_rows, prepare_tree, {"cpu": _train_cpu})
