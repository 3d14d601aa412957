"""Builds every sdist and wheel, checks them, and tries each wheel where nothing but what it declares is installed."""
