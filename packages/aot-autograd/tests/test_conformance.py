"""A backend that traces ahead of time and runs the aten graphs as they are conforms to the interface."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.fx import GraphModule
from torch.utils import _pytree as pytree

from aot_autograd import compile_joint
from fx_interface.conformance import BackendConformance
from fx_interface.symbols import ShapeEnv
from fx_interface.tensor_spec import TensorSpec, spec_of


class StaticLibrary:
    """Runs the operator on ones (a divisor may be among them); sizes are taken as they were hinted, and fixed."""

    def infer(self, op: Any, args: Sequence[Any], kwargs: Any, env: ShapeEnv) -> Any:
        def real(leaf: Any) -> Any:
            if not isinstance(leaf, TensorSpec):
                return env.specialize(leaf) if hasattr(leaf, "terms") else leaf
            sizes, strides = map(env.specialize, leaf.sizes), map(env.specialize, leaf.strides)
            return torch.empty_strided(tuple(sizes), tuple(strides), dtype=leaf.dtype).fill_(1)

        args, kwargs = pytree.tree_map(real, (list(args), dict(kwargs)))
        state = torch.get_rng_state()
        with torch.no_grad():
            result = op(*args, **kwargs)
        torch.set_rng_state(state)
        return pytree.tree_map(lambda t: spec_of(t) if isinstance(t, torch.Tensor) else t, result)


def backend(graph_module: GraphModule, example_inputs: Sequence[Any]) -> Any:
    return compile_joint(
        graph_module, example_inputs, operators=StaticLibrary(), forward_compiler=lambda graph: graph.forward
    )


class TestAheadOfTime(BackendConformance):
    backend = staticmethod(backend)
    test_symbolic_sizes = None  # type: ignore[assignment]  # the library here knows no symbols: test_dynamic.py does
