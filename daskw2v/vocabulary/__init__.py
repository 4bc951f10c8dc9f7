"""Which words a model knows: exact counts of a corpus of any size, ids that do not depend on how it was cut."""
