"""Triton kernels that are written as a whole: matrix products and running totals."""
