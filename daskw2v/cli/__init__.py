"""The command line: `daskw2v train`, and commands that use a model."""

from daskw2v.cli.program import main, run

__all__ = ["main", "run"]
