"""`Vectors`, and what they are asked."""
