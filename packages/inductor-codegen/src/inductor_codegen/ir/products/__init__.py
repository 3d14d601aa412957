"""Matrix products as kernels of a GPU, with what is computed of their elements."""
