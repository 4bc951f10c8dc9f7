"""Replicas merged on the GPUs of one process."""
