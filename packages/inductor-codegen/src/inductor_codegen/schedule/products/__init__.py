"""Kernels in the place of matrix products and of what is computed from these alone."""
