"""Indexes for nearest neighbours: a graph (extra `ann`), and tables of small vectors."""
