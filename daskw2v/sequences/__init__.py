"""Sequences other than text: random walks on a graph and sessions of events, as Parquet files of lists for `train`.

`sources` has the inputs of `train`; `parts` writes sessions, `graph` and `walks` write a graph and walks on it.
"""
