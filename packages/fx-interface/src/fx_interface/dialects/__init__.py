"""The three graph dialects: ``torch`` (as captured), ``aten`` (functional, ahead of time) and ``prims``."""
