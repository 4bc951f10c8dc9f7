"""Runs the command line: `python -m daskw2v.cli`."""

from daskw2v.cli import main

main()
