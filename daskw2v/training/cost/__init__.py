"""How long a run takes, from numbers known before it starts: formulas of a few constants, measured by step.

What training takes, each strategy says itself (`averaging/cost.py`, `rotation/cost.py`).
"""
