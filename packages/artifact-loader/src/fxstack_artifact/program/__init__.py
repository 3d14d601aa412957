"""The meaning of ``program.json``: constants, entry points, what they take and what they give."""
