"""Suites: named tables of models with their inputs."""
