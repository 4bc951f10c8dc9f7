"""What an H200 measured (RESULTS.md, "CUDA, on an NVIDIA H200"), with d=128 and five negatives."""

LAUNCHED = 16  # warps for each multiprocessor
WINDOWS = {
    "1 to 5": {"window": 5, "shrink_windows": True},
    "3": {"window": 3, "shrink_windows": False},
}
SPEED = {  # million trained words/s of kernels alone, by windows and sample
    ("1 to 5", 1e-4): {"sgns": 385.0, "cbow_ns": 429.2, "sg_hs": 103.9, "cbow_hs": 156.0},
    ("1 to 5", 0.0): {"sgns": 304.6, "cbow_ns": 301.1, "sg_hs": 125.8, "cbow_hs": 180.1},
    ("3", 1e-4): {"sgns": 401.5, "cbow_ns": 409.9, "sg_hs": 109.4, "cbow_hs": 145.5},
    ("3", 0.0): {"sgns": 305.4, "cbow_ns": 307.1, "sg_hs": 133.1, "cbow_hs": 159.8},
}
KEPT = 385.0 / 695.0  # of 100 MB of Wikipedia, with sample 1e-4
SWEEP = {1: 63.6, 2: 125.6, 4: 246.8, 8: 441.5, 16: 697.6}  # `sgns`, before subsampling, by warps a multiprocessor
# Bytes of a word of a drawn text, sample 0, by Nsight Compute on an H100 ("a third day")
L2_BYTES = {"sgns": 10_682, "cbow_ns": 10_813, "sg_hs": 16_234, "cbow_hs": 16_210}
DRAM_BYTES = {"sgns": 980, "cbow_ns": 893, "sg_hs": 482, "cbow_hs": 480}
