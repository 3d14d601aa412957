"""Specs of products, factorizations, systems of equations and Fourier transforms."""
