"""Torch's own operator database through ahead-of-time autograd and the decompositions, against eager."""
