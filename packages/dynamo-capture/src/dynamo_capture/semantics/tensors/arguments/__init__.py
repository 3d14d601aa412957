"""Values as arguments of operations on tensors."""
