"""Imports from the current directory: a tokenizer's module, and nothing else."""

import os
import sys

from daskw2v.config.params import Params
from daskw2v.corpus.tokenizers import is_import_path


def import_from_here(params: Params) -> None:
    """Allow a tokenizer package.module:function of the current directory; local workers inherit the path.

    The directory is searched last, so that its files take the place of no installed module.
    """
    here = os.getcwd()
    if is_import_path(params.tokenizer) and not sys.flags.safe_path and here not in sys.path:
        sys.path.append(here)
