"""How long one evaluation of a compiled module's guards takes, without running its graph: ours and stock's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn


def fxstack_check(module: nn.Module, x: torch.Tensor) -> Callable[[], Any]:
    """A call that evaluates the guards of ``module`` compiled with ``x``, as the frame hook does."""
    import dynamo_capture

    wrapped = dynamo_capture.optimize(lambda graph, inputs: graph.forward, fullgraph=True)(module)
    wrapped(x)
    ((_, replacement),) = wrapped.__fxstack_capture__.report.replacements
    function, evaluator = wrapped.function, replacement.evaluator
    assert evaluator.check_call(function, (x,), {})
    return lambda: evaluator.check_call(function, (x,), {})


def stock_check(module: nn.Module, x: torch.Tensor) -> Callable[[], Any]:
    """The same for stock ``torch.compile``."""
    from torch._dynamo.eval_frame import _debug_get_cache_entry_list

    torch.compile(module, backend="eager", fullgraph=True)(x)
    code = type(module).forward.__code__
    (entry,) = _debug_get_cache_entry_list(code)
    scope = {"self": module, "x": x}
    assert entry.guard_manager.check(scope)
    return lambda: entry.guard_manager.check(scope)
