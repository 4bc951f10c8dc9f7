"""What the kernels of several objectives share on an NVIDIA GPU: imported by `daskw2v.kernels.cuda.load` alone."""
