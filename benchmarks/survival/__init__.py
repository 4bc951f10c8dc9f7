"""Faults put into runs, and what became of them: `python -m benchmarks.survival`."""
