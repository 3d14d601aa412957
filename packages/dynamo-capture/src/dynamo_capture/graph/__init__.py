"""The graph under construction, and the sub-graphs of its regions."""
