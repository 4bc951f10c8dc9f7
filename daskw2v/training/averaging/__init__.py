"""Replicas that train side by side and are merged."""
