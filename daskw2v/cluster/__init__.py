"""The Dask cluster of a run: connecting to it, its workers, and waiting for workers and results."""
