"""Indexes for nearest neighbours: a graph (extra `ann`) and a table of int8."""
