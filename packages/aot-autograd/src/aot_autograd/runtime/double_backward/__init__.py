"""Derivatives of derivatives: the program runs again, for torch to differentiate."""
