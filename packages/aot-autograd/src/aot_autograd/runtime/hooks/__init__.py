"""Hooks of inputs and results, called where eager calls them."""
