"""Random numbers that are drawn outside of tensors."""
