"""From encoded text to a model: pipeline, strategies and devices."""
