"""Guards on what interprets operators around a function: modes, and transforms of ``torch.func``."""
