"""Retraining: trains, checks, aligns and publishes a new version of a model, and sends notices."""
