"""From a frame that starts to compiled code, and the functions with which that is asked for."""
