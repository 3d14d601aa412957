"""C++ text of types, names, scalars and index expressions."""
