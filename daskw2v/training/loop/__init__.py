"""The training loop, its checkpoints, and the interface of strategies."""
