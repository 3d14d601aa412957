"""Specs of pooling, interpolation and patches."""
