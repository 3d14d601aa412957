"""Where images lie in memory."""
