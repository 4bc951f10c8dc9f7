"""Runs the command line: `python -m daskw2v`."""

from daskw2v.cli import main

main()
