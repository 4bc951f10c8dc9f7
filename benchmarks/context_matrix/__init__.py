"""W2V-CL (Li et al. 2019) beside its baselines: a module for each of its figures, run by `__main__`."""
