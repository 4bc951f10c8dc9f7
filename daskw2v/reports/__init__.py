"""An HTML report about a model, and the comparison of two models."""
