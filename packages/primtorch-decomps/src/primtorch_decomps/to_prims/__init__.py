"""The pass from dialect ``aten`` to ``prims``."""
