"""How values of each kind are made by replacement code."""
