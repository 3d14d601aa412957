"""One row of the comparison: a model under a backend in a phase on a device, in processes of its own."""
