"""Indexes for approximate nearest neighbours (extra `ann`)."""
