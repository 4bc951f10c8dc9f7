"""How much memory a run takes, from numbers known before it starts.

Constants that describe data structures are those of the modules that make them; those of the process itself are
measured, as is all of it (`python -m benchmarks.memory`).
"""

from daskw2v.estimate.base import Estimate, Part, Stage, Workers
from daskw2v.estimate.check import check_encoding, check_training
from daskw2v.estimate.stages import estimate
from daskw2v.estimate.text import Text, guess_text, known_text
from daskw2v.estimate.workers import local_workers, workers_of

__all__ = [
    "Estimate",
    "Part",
    "Stage",
    "Text",
    "Workers",
    "check_encoding",
    "check_training",
    "estimate",
    "guess_text",
    "known_text",
    "local_workers",
    "workers_of",
]
