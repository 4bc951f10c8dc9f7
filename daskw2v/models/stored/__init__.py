"""A version as files: manifest, tables of rows, words, features, the index."""
