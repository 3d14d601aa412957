"""The backward: gradients as they arrive, the compiled graph, gradients between results."""
