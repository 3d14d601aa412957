"""CUDA graphs of whole compiled graphs: recorded once, replayed where nobody can tell (docs/decisions/0110)."""
