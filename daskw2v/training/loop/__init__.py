"""The training loop, and what a strategy is to it."""
