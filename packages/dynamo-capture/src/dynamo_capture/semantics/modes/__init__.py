"""Modes of torch, blocks that set them, and objects that watch operations."""
