"""What nodes of a graph call that no operator of torch is."""
