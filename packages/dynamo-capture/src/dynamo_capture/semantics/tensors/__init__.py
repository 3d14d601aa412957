"""Tensors of a trace: graph inputs, operations, attributes."""
