"""The CUDA kernels: one step of one algorithm each, no host logic."""
