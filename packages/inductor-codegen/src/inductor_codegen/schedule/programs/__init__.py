"""From kernels and calls to a program of steps: order of memory, writes to inputs, kernels used twice."""
