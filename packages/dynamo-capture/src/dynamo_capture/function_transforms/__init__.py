"""Functions that are called in transforms of ``torch.func``: what may be captured there, and how its graph is run."""
