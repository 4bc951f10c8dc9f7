"""Preparation of a run: settings are checked, text is read, and strategy, memory and time are planned."""
