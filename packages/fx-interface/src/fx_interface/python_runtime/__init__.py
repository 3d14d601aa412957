"""What the stack needs of Python's runtime: builtins of its own, and the garbage collector."""
