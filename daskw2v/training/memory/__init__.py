"""How much memory a run takes, from numbers known before it starts.

Constants that describe data structures are those of the modules that make them; those of the process itself are
measured, as is all of it (`python -m benchmarks.memory`). What training takes, each strategy says itself.
"""
