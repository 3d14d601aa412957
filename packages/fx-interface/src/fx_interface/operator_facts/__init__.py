"""What ATen operators do, beyond their schemas: raise for some data, warn, have functional overloads."""
