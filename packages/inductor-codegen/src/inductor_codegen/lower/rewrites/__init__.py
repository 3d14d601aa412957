"""Values that are computed in another way than the graph says: short sums, and parts of joined tensors."""
