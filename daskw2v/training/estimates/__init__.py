"""Memory and time of a run, computed from the work of its strategy, and the check that it fits into memory."""
