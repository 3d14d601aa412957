"""Attention with programs: from the operator's call to a kernel."""
