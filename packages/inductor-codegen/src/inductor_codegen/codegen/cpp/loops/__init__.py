"""C++ loops: rows, lanes, slices, vectors and threads."""
