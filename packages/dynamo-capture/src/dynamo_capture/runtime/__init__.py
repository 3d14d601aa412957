"""What replacement code calls while it runs."""
