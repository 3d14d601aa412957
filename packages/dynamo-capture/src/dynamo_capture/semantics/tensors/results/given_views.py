"""Writes in place to what a custom function gave as a view, or as its input is, which autograd refuses.

    class Same(Function): forward = lambda ctx, x: x        Same.apply(x * 2).relu_()      -> RuntimeError

So it refuses writes to views of those, in words that name the function of the view. A graph break before the write,
or a captured call inside of the function, would hand on a tensor of a compiled graph, to which Python may write. So
the refusal is the program's, in torch's words; if nothing catches it the function and all that it calls run in Python.
"""

from __future__ import annotations

import re
from typing import Any, Final

import torch
from torch.autograd import Function

from dynamo_capture.values import ObjectValue, TensorValue, Value

GIVEN_AS_VIEW: Final = "given_as_view"
"""In the meta of the node of such a result, or of a view of one: the name of the function's class, the place among its
results, and how many there are, all of them tensors with gradients."""
_NODE = re.compile(r"Backward\d*$")


def maker_of(view: torch.Tensor) -> tuple[str, int, int] | None:
    """What ``GIVEN_AS_VIEW`` says of a view that one of torch's functions has made."""
    made_by = view.grad_fn
    if made_by is None:
        return None
    return _NODE.sub("", made_by.name()), view.output_nr, view.output_nr + 1


def pass_on(view: TensorValue, seen: TensorValue, maker: tuple[str, int, int] | None) -> None:
    """``view`` is made of ``seen``, by a function whose views autograd follows."""
    if maker is not None and seen.refuses_writes and GIVEN_AS_VIEW in seen.node.meta:
        view.node.meta[GIVEN_AS_VIEW] = maker


def refusal(tensor: TensorValue) -> RuntimeError | None:
    """What torch raises for a write to ``tensor``; None if it is no result of a custom function and no view of one, or
    if that is not known. A function of the same name and form is asked."""
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


def is_refused_write(raised: Value) -> bool:
    """Whether the program raises because of such a write."""
    return isinstance(raised, ObjectValue) and raised.is_refused_write
