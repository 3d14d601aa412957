"""Building graphs node by node, and removing nodes that nothing uses."""
