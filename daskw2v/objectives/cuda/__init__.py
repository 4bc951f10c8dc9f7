"""The parts that kernels of several objectives share on an NVIDIA GPU; only `kernels.cuda.load` imports them."""
