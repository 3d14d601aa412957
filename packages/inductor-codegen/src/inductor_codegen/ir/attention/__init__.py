"""Attention with programs: what its kernels are, and the tiles that a GPU takes them in."""
