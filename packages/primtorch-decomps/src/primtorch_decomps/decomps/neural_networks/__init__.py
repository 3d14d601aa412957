"""Layers, activations and losses of neural networks, with their gradients."""
