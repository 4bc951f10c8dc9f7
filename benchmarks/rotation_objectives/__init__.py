"""Rotation of other objectives than sgns: emulations in one process, and what they show; run by `__main__`."""
