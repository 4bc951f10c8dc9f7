"""Word vectors that a convolutional network computes from characters (W2V-CL, Li et al. 2019, section 5.8).

The updates of the rows of `context_matrix` are the gradients of the network.
"""

from dataclasses import replace

from daskw2v.objectives.context_matrix import CONTEXT_MATRIX
from daskw2v.objectives.settings import SubwordNetwork
from daskw2v.objectives.subwords.training import check_torch

# The learning rate is the network's
SUBWORDS = replace(
    CONTEXT_MATRIX,
    name="subwords",
    settings=SubwordNetwork,
    title="a network from characters to vectors, over the word-context matrix",
    alphas={"adam": 0.001},
    has_network=True,
    check=check_torch,
)
