"""Text that is in no file: collections of Dask, tables, datasets and iterables are written to files, then read."""
