"""Running compiled graphs so that one that raises has changed nothing."""
