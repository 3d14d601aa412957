"""Functions in C++ text that kernels call; each is a text without imports."""
