"""Writes in place to what a custom function gave as a view, or as its input is, which autograd refuses.

    class Same(Function): forward = lambda ctx, x: x        Same.apply(x * 2).relu_()      -> RuntimeError

A graph break before the write would hand on a tensor of a compiled graph, to which Python may write. So the refusal is
the program's, in torch's words.
"""

from __future__ import annotations

from typing import Any, Final

import torch
from torch.autograd import Function

from dynamo_capture.values import TensorValue

GIVEN_AS_VIEW: Final = "given_as_view"
"""In the meta of the node of such a result: the name of the function's class, the place among its results, and how many
there are, all of them tensors with gradients."""


def refusal(tensor: TensorValue) -> RuntimeError | None:
    """What torch raises for a write to ``tensor``; None if it is no result of a custom function, or if that is not
    known. A function of the same name and form is asked."""
    given = tensor.node.meta.get(GIVEN_AS_VIEW)
    if given is None:
        return None
    name, place, count = given

    def same(ctx: Any, *args: Any) -> Any:
        return args if count > 1 else args[0]

    function: Any = type(name, (Function,), {"forward": staticmethod(same), "backward": staticmethod(same)})
    with torch.enable_grad():
        parts = [torch.zeros(1, requires_grad=True) * 1 for _ in range(count)]
        results = function.apply(*parts)
        try:
            (results[place] if count > 1 else results).add_(1)
        except RuntimeError as error:
            return error.with_traceback(None)
    return None
