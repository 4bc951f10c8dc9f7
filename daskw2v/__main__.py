"""Runs the command line: `python -m daskw2v`."""

import os
import sys

import daskw2v

_CURRENT_FOLDER, _PACKAGE_FOLDER = os.getcwd(), os.path.dirname(daskw2v.__path__[0])

# Python searches the current folder first, before installed packages. That is needed only if daskw2v lies in it
if not sys.flags.safe_path and sys.path[0] == _CURRENT_FOLDER != _PACKAGE_FOLDER:
    del sys.path[0]

from daskw2v.cli import run  # noqa: E402  # after the change of sys.path, as it imports installed packages

if __name__ == "__main__":
    run()
