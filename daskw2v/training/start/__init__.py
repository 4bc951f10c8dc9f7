"""The start of training: first rows, base vectors, features, markets."""
