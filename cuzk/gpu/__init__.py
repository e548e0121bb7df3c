"""The CUDA backend: compiling, loading and launching kernels, and the device's memory."""
