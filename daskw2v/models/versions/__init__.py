"""Versions of a work directory: names, what is served, damage."""
