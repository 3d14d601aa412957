"""How library operators are reached from native code."""
