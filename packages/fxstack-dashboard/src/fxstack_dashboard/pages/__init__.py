"""Results as a static site: HTML files that need neither a server nor a network."""
