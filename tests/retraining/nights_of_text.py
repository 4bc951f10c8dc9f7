"""What tests of nights share: Params, Resources and Gates for little text."""

from daskw2v import Gates, Params, Resources

PARAMS = Params(vector_size=8, min_count=2, epochs=2, rounds_per_epoch=2, alpha=0.05)
ONE = Resources(threads=1, block_size="64 KiB")  # the same bits each time; a day is no small file
LOOSE = Gates(min_stability=None, min_kept=None)  # of so little text
