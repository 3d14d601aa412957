"""Operators that graphs call besides those of torch: functional forms of what writes, and layers with a workspace."""
