"""Which words a model knows: exact counts, and ids that do not depend on how the corpus was cut."""
