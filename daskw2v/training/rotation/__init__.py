"""Partitions of both tables, trained two by two: one of `input` with one of `output`."""
