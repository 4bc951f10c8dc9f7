"""Word vectors from text too large for one machine, trained on any Dask cluster."""

from daskw2v.errors import Daskw2vError
from daskw2v.evaluation import evaluate
from daskw2v.models.export import export
from daskw2v.models.vectors import Vectors
from daskw2v.params import Params, Resources
from daskw2v.train import train

__all__ = ["Daskw2vError", "Params", "Resources", "Vectors", "evaluate", "export", "train"]
