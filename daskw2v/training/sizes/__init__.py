"""Numbers that memory and time depend on: of a text, and of workers."""
