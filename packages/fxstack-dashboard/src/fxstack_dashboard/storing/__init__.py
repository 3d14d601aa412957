"""Results in an embedded database, with the machine, versions and commit that they are of."""
