"""Words' vectors made of their characters by a convolutional network (W2V-CL, Li et al. 2019, section 5.8)."""
