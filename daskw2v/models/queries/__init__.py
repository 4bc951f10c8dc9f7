"""`Vectors` and their queries."""
