"""Indexes of vectors: most of a word's neighbours, in a fraction of the time (extra `ann`)."""
