"""Skip-gram with hierarchical softmax on the CPU: all contexts of a window share their center's path."""

from daskw2v.objectives.cpu.skip_gram import skip_gram
from daskw2v.objectives.cpu.targets import PATHS

train = skip_gram(PATHS)
