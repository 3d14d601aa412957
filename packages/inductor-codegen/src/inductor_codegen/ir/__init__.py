"""The intermediate forms: loop IR of kernels, and programs of steps."""
