"""Triton kernels loaded, compiled for a class of sizes, and the sizes of their launches."""
