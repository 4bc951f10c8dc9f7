"""SGNS on the CPU: one pass over the centers of a segment.

Negatives are shared by a window (as in pWord2Vec and FULL-W2V), or each pair draws its own (as in word2vec.c).
"""

from daskw2v.config.params import Params
from daskw2v.objectives.cpu.centers import CenterTrainer
from daskw2v.objectives.cpu.skip_gram import skip_gram
from daskw2v.objectives.cpu.targets import NEGATIVES, PAIRS
from daskw2v.objectives.settings import SGNS

_TRAINERS = {"shared": skip_gram(NEGATIVES), "pair": skip_gram(PAIRS)}


def trainer_of(params: Params) -> CenterTrainer:
    """Return the trainer."""
    return _TRAINERS[SGNS.of(params).negative_sharing]
