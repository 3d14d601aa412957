"""The C++ compiler: finding it, running it, and looking at what it made."""
