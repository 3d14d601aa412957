"""What the installed package must do at least; ``nox -s release-check`` runs it outside of the repository."""

from __future__ import annotations

import torch

from fx_interface import GraphBuilder, TensorSpec, canonical_hash, from_json, print_graph, to_json, verify


def main() -> None:
    """A graph with a symbolic size is built, verified, printed, and comes back from JSON as the same graph."""
    builder = GraphBuilder("aten")
    rows = builder.size(hint=8)
    spec = TensorSpec((rows, 16), (16, 1), torch.float32, torch.device("cpu"))
    x = builder.input(spec)
    graph = builder.build(builder.call(torch.ops.aten.relu.default, x, spec=spec))
    verify(graph)
    assert "float32[s0, 16] = aten.relu.default(" in str(print_graph(graph))
    assert canonical_hash(from_json(to_json(graph))) == canonical_hash(graph)


if __name__ == "__main__":
    main()
