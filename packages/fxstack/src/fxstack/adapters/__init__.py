"""Adapters that let our parts and stock's be combined; each is imported only when it is asked for by name."""
