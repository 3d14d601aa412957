"""From a program to a callable: text, native code and the runtime put together, on a CPU and on a GPU."""
