"""Stock's compiler, as one of the backends that are compared. Loaded only where it is asked for."""
