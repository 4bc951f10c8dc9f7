"""Vectors that a network computes from the characters of words: the network, its training, the objective."""
