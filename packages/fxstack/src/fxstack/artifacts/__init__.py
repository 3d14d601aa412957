"""Models compiled ahead of time: one graph with a contract, written to a file that ``fxstack_artifact`` runs."""
