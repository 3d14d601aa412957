"""Regions: parts of the program that become sub-graphs of one node. One file for each kind."""
