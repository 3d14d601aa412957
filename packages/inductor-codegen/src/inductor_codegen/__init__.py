"""Compile functional FX graphs of primitives into fused native kernels and one entry point."""
