"""CBOW with hierarchical softmax on the CPU: a window's contexts together predict their center's path."""

from daskw2v.config.params import Params
from daskw2v.objectives.cpu.centers import CenterTrainer
from daskw2v.objectives.cpu.hidden import cbow
from daskw2v.objectives.cpu.targets import PATHS
from daskw2v.objectives.settings import CBOWHS


def find_trainer(params: Params) -> CenterTrainer:
    """Return the trainer of CBOW with hierarchical softmax for Params."""
    return cbow(PATHS, CBOWHS.of(params).cbow_mean)
