"""The watch of a training while it goes on: callbacks, evaluation sets, held-out text."""
