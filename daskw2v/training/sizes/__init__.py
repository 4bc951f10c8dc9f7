"""The sizes of a text and of workers, which memory and time of a run depend on."""
