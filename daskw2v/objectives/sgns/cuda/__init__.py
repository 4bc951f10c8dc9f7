"""SGNS on an NVIDIA GPU: imported by `daskw2v.cuda.load` alone."""
