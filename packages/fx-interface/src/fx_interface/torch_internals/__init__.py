"""What torch keeps and does: its modes and its process's state, the extents of tensors, dispatch."""
