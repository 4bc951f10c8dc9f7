"""CBOW with hierarchical softmax in float64 NumPy."""

from daskw2v.objectives.reference import WindowRule
from daskw2v.objectives.sg_hs.reference import goals

RULE = WindowRule(goals, as_one=True)
train = RULE.train
