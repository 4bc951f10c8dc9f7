"""Opens the model of a command."""

from collections.abc import Mapping
from typing import Any

import click

from daskw2v.models.queries.vectors import Vectors

model_argument = click.argument("model")


def open_once(model: str, storage_options: Mapping[str, Any]) -> Vectors:
    """Open a model without loading it, as a command reads each row at most once."""
    return Vectors.open(model, storage_options, in_memory=False)
