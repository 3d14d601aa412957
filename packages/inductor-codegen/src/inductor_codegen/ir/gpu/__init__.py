"""How a GPU takes kernels."""
