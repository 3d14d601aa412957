"""Guards that only capture needs, one kind in each file, and the log in which a trace collects its guards."""
