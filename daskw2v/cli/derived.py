"""Tables of the TOML file that say that inputs are no text, but what text is derived from."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from daskw2v.cli.config_file import table
from daskw2v.collections.kinds import TextInputs
from daskw2v.corpus.inputs import Inputs
from daskw2v.errors import ParameterError
from daskw2v.sequences.settings import EdgeList, Sessions, Walks
from daskw2v.sequences.sources import Events, Graph

EVENTS = "events"
GRAPH, WALKS = "graph", "walks"
TABLES = (EVENTS, GRAPH, WALKS)


def inputs_of(names: Inputs, config: Mapping[str, Any], path: Path | None) -> TextInputs:
    """Return the inputs with these names: events or a graph, if the file has such a table; or else text.

    Raises
    ------
    ParameterError
        If it has tables of both, or walks on no graph; or if a table is wrong.
    """
    if WALKS in config and GRAPH not in config:
        raise ParameterError(
            f"{path} has a table [{WALKS}], but no table [{GRAPH}].", f"Write [{GRAPH}] if inputs are edges."
        )
    if EVENTS in config and GRAPH in config:
        raise ParameterError(f"{path} has tables [{EVENTS}] and [{GRAPH}].", "Leave one of them out.")
    if EVENTS in config:
        return Events(names, table(Sessions, config, EVENTS, path))
    if GRAPH in config:
        return Graph(names, table(EdgeList, config, GRAPH, path), table(Walks, config, WALKS, path))
    return names
