"""What calls mean: builtins, methods of builtin objects, construction, torch, the standard library."""
