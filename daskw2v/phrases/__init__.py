"""Phrases: bigrams are counted exactly over all shards, scored, and joined into words in a new corpus."""
