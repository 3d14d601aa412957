"""Graphs in which equal blocks follow each other: a few are compiled, and the program of all is made from theirs."""
