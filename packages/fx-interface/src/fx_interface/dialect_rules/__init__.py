"""What a graph of each dialect may contain, for the verifier."""
