"""Where values of the program come from, beyond what the FX-graph interface has sources for."""
