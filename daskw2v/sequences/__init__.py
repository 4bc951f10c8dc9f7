"""Sequences that are no text, as Parquet of lists which `train` reads: walks on a graph, sessions of events.

They stand above `sampling`, by whose generator walks are drawn, and below all that trains: nothing of the package reads
them but as files.
"""
