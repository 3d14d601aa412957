"""Where each buffer lives, and what a call holds in memory."""
