"""Sizes that memory and time are computed from: of text, tables and machines."""
