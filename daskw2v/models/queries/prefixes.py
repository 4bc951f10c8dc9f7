"""The first columns of vectors as a model of its own."""

import numpy as np

from daskw2v.errors import ParameterError
from daskw2v.models.queries.vectors import Vectors
from daskw2v.models.stored.arguments import at_least_one


def prefix(vectors: Vectors, columns: int) -> Vectors:
    """Return the model of `Vectors.prefix`, whose argument and errors these are."""
    columns = at_least_one("columns", columns)
    if columns > vectors.vector_size:
        raise ParameterError(
            f"columns={columns} is more than the {vectors.vector_size} that the vectors have.", "Give fewer."
        )
    if vectors.subwords is not None:
        raise ParameterError(
            f"columns={columns}: the model's subword network computes vectors of {vectors.vector_size} columns.",
            "Take a prefix of a model without a network.",
        )
    rows = np.empty((len(vectors), columns), np.float32)
    for ids in vectors.slices():
        rows[ids] = vectors.rows(ids)[:, :columns]
    metadata, params = vectors.metadata, vectors.metadata.get("params", {})
    if params:
        inner = [size for size in params.get("prefix_sizes", ()) if size < columns]
        metadata = {**metadata, "params": {**params, "vector_size": columns, "prefix_sizes": inner}}
    features = None if vectors.features is None else vectors.features.prefix(columns)
    made = vectors._of_rows(rows, metadata, None, features)
    vars(made)["_outputs"] = vectors._outputs
    return made
