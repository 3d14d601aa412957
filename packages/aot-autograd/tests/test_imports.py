"""Tracing and running a training step loads none of torch's own compiler."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
import torch
from fx_interface.tensor_spec import spec_of
from torch.utils import _pytree as pytree
from torch.nn import functional as F
from fx_interface.tensor_spec import TensorSpec

class Library:
    def infer(self, op, args, kwargs, env):
        zeros = lambda s: torch.empty_strided(s.sizes, s.strides, dtype=s.dtype).zero_()
        real = lambda s: zeros(s) if isinstance(s, TensorSpec) else s
        args, kwargs = pytree.tree_map(real, (list(args), dict(kwargs)))
        state = torch.get_rng_state()
        result = op(*args, **kwargs)
        torch.set_rng_state(state)
        return pytree.tree_map(lambda t: spec_of(t) if isinstance(t, torch.Tensor) else t, result)

before = set(sys.modules)
from aot_autograd import aot_module
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4), torch.nn.Dropout(), torch.nn.GELU())
run = aot_module(model, operators=Library(), forward_compiler=lambda graph: torch.fx.Interpreter(graph).run)
run(torch.randn(3, 4)).sum().backward()
assert model[0].weight.grad is not None
forbidden = ("torch._dynamo", "torch._inductor", "torch._functorch", "functorch", "torch._decomp", "torch._refs",
             "torch._prims", "torch.export", "torch.fx.experimental", "sympy")
loaded = [name for name in set(sys.modules) - before if name.startswith(forbidden)]
assert not loaded, loaded
"""


def test_no_forbidden_module_is_loaded() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
