"""C++ text of kernels."""
