"""Function transforms: derivatives in both directions, and ``vmap``."""
