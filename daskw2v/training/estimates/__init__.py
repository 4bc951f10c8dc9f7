"""Estimates of the memory of a run, by the strategies' own formulas, and the check that it fits."""
