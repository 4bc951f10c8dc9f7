"""Preparation of a run: settings are checked, text is read; strategy, memory and time are planned."""
