"""The commit that made a row worse, found in a copy of the repository of its own."""
