"""Formats of other tools: export, import."""
