"""The file: its bytes, its manifest, and the checks before anything in it is used."""
