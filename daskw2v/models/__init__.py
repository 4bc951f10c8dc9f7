"""Models: stored versions, queries, formats of other tools, and indexes."""
