"""CPython versions as records."""
