"""The corpus as numbers: block-local codes and dictionaries, read once from text and never rewritten."""
