"""Numbers and texts that data or sizes decide about."""
