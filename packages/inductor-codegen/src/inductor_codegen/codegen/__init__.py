"""Text from programs and kernels: C++, Triton, and the wrapper around them."""
