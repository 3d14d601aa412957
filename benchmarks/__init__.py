"""Benchmarks against eager and stock ``torch.compile``, in one run: ``python -m benchmarks``."""
