"""The five papers' tables, each beside what is measured here: `python -m benchmarks.papers --help`.

A module a paper; `session` is what they train and measure with. What a paper gives stands in
its module as `Figures`, with the place where the paper gives it; nothing of ours is written down.
"""
