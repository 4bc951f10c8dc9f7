"""All that a machine with an NVIDIA GPU is wanted for, in pieces that can be taken up again."""
