from hypothesis import settings

# The first example of a test may build a table or load a library: time says nothing about it.
settings.register_profile("corpus", deadline=None, max_examples=60)
settings.load_profile("corpus")
