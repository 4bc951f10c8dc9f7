"""Runs the command line: `python -m daskw2v`."""

import os
import sys

import daskw2v

_HERE, _HOME = os.getcwd(), os.path.dirname(daskw2v.__path__[0])

# Python put the current directory first, before what is installed. It is needed if the package itself lies there.
if not sys.flags.safe_path and sys.path[0] == _HERE != _HOME:
    del sys.path[0]

from daskw2v.cli import run  # noqa: E402  # only now, as it imports what is installed

if __name__ == "__main__":
    run()
