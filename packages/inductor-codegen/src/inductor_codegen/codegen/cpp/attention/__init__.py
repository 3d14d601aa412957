"""Kernels of attention for a CPU."""
