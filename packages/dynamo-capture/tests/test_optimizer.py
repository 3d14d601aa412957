from __future__ import annotations

import pkgutil
import subprocess
import sys
from typing import Any

import torch

import dynamo_capture


def test_no_public_name_is_that_of_a_module() -> None:
    modules = {module.name for module in pkgutil.iter_modules(dynamo_capture.__path__)}
    assert not modules & set(dynamo_capture.__all__)


def test_public_names_work_in_any_order() -> None:
    program = "import dynamo_capture as d; d.reset(); d.run_graph; assert callable(d.optimize)"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_reset_forgets_what_functions_without_a_named_optimizer_compiled() -> None:
    graphs: list[Any] = []

    def backend(graph_module: Any, example_inputs: Any) -> Any:
        graphs.append(graph_module)
        return graph_module.forward

    fast = dynamo_capture.optimize(backend)(lambda x: x + 1.0)
    for expected in (1, 1):
        fast(torch.ones(2))
        assert len(graphs) == expected
    dynamo_capture.reset()
    assert torch.equal(fast(torch.ones(2)), torch.full((2,), 2.0))
    assert len(graphs) == 2
