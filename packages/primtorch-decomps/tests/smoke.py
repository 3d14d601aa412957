"""What the installed package must do at least; ``nox -s release-check`` runs it outside of the repository."""

from __future__ import annotations

import torch
from torch.fx import Interpreter

from fx_interface import GraphBuilder, verify
from fx_interface.symbols import ShapeEnv
from fx_interface.tensor_spec import spec_of
from primtorch_decomps import LIBRARY, decompose


def main() -> None:
    """A rule gives the layout that the kernel gives; a decomposed graph computes what the operator computes."""
    aten = torch.ops.aten
    x = torch.randn(8, 128)
    spec = LIBRARY.infer(aten.add.Tensor, (spec_of(x.t()), 1.5), {}, ShapeEnv())
    assert tuple(spec.sizes) == (128, 8)
    assert tuple(spec.strides) == (x.t() + 1.5).stride()

    builder = GraphBuilder("aten")
    value = builder.input(spec_of(x))
    graph = builder.build(builder.call(aten.silu.default, value, spec=spec_of(x)))
    primitives = decompose(graph)
    verify(primitives)
    assert not any(node.target is aten.silu.default for node in primitives.graph.nodes)
    result = Interpreter(primitives).run(x)
    torch.testing.assert_close(result[0], torch.nn.functional.silu(x))


if __name__ == "__main__":
    main()
