"""From a group of values to a kernel: loops, passes, scalars."""
