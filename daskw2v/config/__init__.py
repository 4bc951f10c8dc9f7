"""Settings: parameters and resources, declared and checked once."""
