"""Sampling from the corpus: segments with subsampling, pairs in buckets, the word-context matrix."""
