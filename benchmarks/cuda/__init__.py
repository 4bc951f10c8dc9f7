"""What the kernels for NVIDIA GPUs do: `python -m benchmarks.cuda`."""
