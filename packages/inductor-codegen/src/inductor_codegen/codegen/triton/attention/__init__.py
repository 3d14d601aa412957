"""Kernels of attention for a GPU."""
