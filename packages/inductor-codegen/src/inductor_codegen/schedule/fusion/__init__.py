"""Which values are computed together in one kernel."""
