"""Bigrams that become words: counted exactly over the shards, scored, and joined in shards of a corpus of their own."""
