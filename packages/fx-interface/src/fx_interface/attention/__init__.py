"""Attention with programs for scores, in the dialects ``aten`` and ``prims``: two operators, and what they compute."""
