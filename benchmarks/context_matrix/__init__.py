"""W2V-CL (Li et al. 2019), paper 002, beside its baselines: the figures, and plain minibatches with Adam ."""
