"""Specs of layers and losses of neural networks, with their gradients."""
