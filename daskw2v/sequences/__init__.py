"""Sequences other than text: random walks on a graph and sessions of events, as Parquet files of lists for `train`.

The package is above `sampling`, whose random numbers walks use. Other packages only read its files.
"""
