"""Skip-gram with hierarchical softmax on the CPU: all contexts of a window share their center's path."""

from daskw2v.config.params import Params
from daskw2v.objectives.cpu.centers import CenterTrainer
from daskw2v.objectives.cpu.skip_gram import skip_gram
from daskw2v.objectives.cpu.targets import PATHS

_TRAINER = skip_gram(PATHS)


def find_trainer(_: Params) -> CenterTrainer:
    """Return the trainer of skip-gram with hierarchical softmax for Params."""
    return _TRAINER
