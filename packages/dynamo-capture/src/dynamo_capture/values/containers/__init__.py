"""Lists, tuples, dicts and sets, and what stands for parts of them."""
