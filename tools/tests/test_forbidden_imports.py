"""No package stands on the parts of torch that the project is an implementation of, and the check sees each way to."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import forbidden_imports


def test_no_package_uses_a_forbidden_part() -> None:
    assert forbidden_imports.violations() == []


@pytest.mark.parametrize(
    "source",
    [
        "import torch._dynamo",
        "import torch._inductor.config as config",
        "from torch import _dynamo",
        "from torch._decomp import get_decompositions",
        "from torch.fx.experimental.proxy_tensor import make_fx",
        "import torch\n\ndef f(x):\n    return torch.compile(x)",
        "import torch as t\n\nt._refs.add(1, 2)",
        "import torch.fx as fx\n\nfx.experimental.symbolic_shapes",
        "from torch import compile",
        "import functorch",
        "import sympy",
        "from dataclasses import dataclass",
        "import dataclasses\n\n@dataclasses.dataclass\nclass A: ...",
        "from importlib import import_module\n\nimport_module('torch._inductor')",
        "__import__('torch.export')",
        "def f():\n    import torch._functorch.aot_autograd",
    ],
)
def test_each_way_of_use_is_found(source: str) -> None:
    assert list(forbidden_imports.uses(source))


@pytest.mark.parametrize(
    "source",
    [
        "import torch\n\ntorch.add(1, 2)",
        "from torch.fx import GraphModule",
        "from . import _dynamo",
        "import torch\n\ntorch.exporter",
        "compile('1', 'f', 'eval')",
        "'torch._dynamo' in names",
    ],
)
def test_other_code_is_left_alone(source: str) -> None:
    assert not list(forbidden_imports.uses(source))
