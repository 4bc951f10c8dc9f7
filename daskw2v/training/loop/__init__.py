"""The interfaces of a strategy and of its work, and checkpoints."""
