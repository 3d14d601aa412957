"""Symbolic sizes and numbers as torch sees them: nodes behind ``torch.SymInt`` and ``torch.SymFloat``."""
