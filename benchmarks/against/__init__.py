"""This checkout against another commit: bits of vectors, speed, and what becomes of its work directories."""
