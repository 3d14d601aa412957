"""Tensors and arrays."""
