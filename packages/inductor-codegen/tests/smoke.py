"""What the installed package must do at least; ``nox -s release-check`` runs it outside of the repository."""

from __future__ import annotations

import tempfile
from pathlib import Path

import torch

from fx_interface import GraphBuilder
from fx_interface.dialects import prims
from fx_interface.tensor_spec import spec_of
from inductor_codegen import CodegenOptions, compile_graph


def main() -> None:
    """A graph of primitives is compiled by the machine's C++ compiler, and is kept in the store."""
    x = torch.randn(16, 8)
    spec = spec_of(x)
    builder = GraphBuilder("prims")
    value = builder.input(spec)
    doubled = builder.call(prims.add, value, value, spec=spec)
    graph = builder.build(builder.call(prims.tanh, doubled, spec=spec))
    with tempfile.TemporaryDirectory() as folder:
        compiled = compile_graph(graph, CodegenOptions(cache_dir=Path(folder)))
        torch.testing.assert_close(compiled(x)[0], torch.tanh(2 * x))
        assert list(Path(folder).rglob("*.so"))


if __name__ == "__main__":
    main()
