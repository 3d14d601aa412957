"""Kernels in the place of library calls."""
