"""From loop IR to fused kernels and a program of steps."""
