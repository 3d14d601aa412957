"""Running frames: calls that are inlined, what their frames return, the frame that is compiled."""
