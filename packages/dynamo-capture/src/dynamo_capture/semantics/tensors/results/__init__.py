"""Results of operations on tensors."""
