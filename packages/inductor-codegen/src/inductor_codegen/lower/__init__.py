"""From a graph of primitives to loop IR."""
