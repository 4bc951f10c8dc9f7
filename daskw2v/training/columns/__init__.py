"""Columns of the word-context matrix, trained table by table."""
