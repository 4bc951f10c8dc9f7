"""Versions of a work directory: names, the served version, tags, damage."""
