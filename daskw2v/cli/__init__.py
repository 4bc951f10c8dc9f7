"""The command line: `daskw2v train`, and what is done with a model afterwards."""

from daskw2v.cli.program import main

__all__ = ["main"]
