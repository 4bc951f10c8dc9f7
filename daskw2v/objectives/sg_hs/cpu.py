"""Skip-gram with hierarchical softmax on the CPU: all contexts of a window share their center's path."""

from daskw2v.objectives.cpu.paths import PATHS
from daskw2v.objectives.cpu.skip_gram import skip_gram

train = skip_gram(PATHS)
