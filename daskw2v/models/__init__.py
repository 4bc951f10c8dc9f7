"""Models: where they are kept, how they are queried, and what other tools read."""
