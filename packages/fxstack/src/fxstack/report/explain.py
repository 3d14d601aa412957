"""``fxstack.explain(fn)(*args)``: what compiling one call did."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, overload

from torch.fx import GraphModule

import dynamo_capture
from dynamo_capture.foundation.texts.users_words import line_of_user
from fx_guards import GuardSet
from fx_interface.python_runtime.quick_dataclasses import dataclass
from fxstack.compile import original_callable
from fxstack.observing.subjects import guard_text
from fxstack.report.explanation import Break, Explanation
from primtorch_decomps import LIBRARY


@dataclass(frozen=True, slots=True)
class Explaining:
    """Called with arguments, it runs the function on them and returns the ``Explanation``."""

    function: Callable[..., Any]
    dynamic: bool | None

    def __call__(self, *args: Any, **kwargs: Any) -> Explanation:
        optimize = dynamo_capture.optimize(_as_captured, dynamic=self.dynamic, operators=LIBRARY)
        result = optimize(self.function)(*args, **kwargs)
        return _explanation(optimize.capture.report, result)

    def __repr__(self) -> str:
        return "nothing was run yet: call fxstack.explain(function) with the function's arguments"


@overload
def explain(function: Callable[..., Any], /, *, dynamic: bool | None = None) -> Explaining: ...


@overload
def explain(
    function: Callable[..., Any], first: Any, /, *args: Any, dynamic: bool | None = None, **kwargs: Any
) -> Explanation: ...


def explain(
    function: Callable[..., Any], /, *args: Any, dynamic: bool | None = None, **kwargs: Any
) -> Explaining | Explanation:
    """What compiling one call does: ``print(fxstack.explain(model)(x))``. ``model(x)`` is run once, and what was
    captured of it with torch's own kernels. Exceptions of the function pass unchanged.

    ``explain(model, x)`` is the same in one call, for functions that take arguments (none of them named ``dynamic``).
    TypeError for what cannot be called.
    """
    explaining = Explaining(original_callable(function), dynamic)
    return explaining(*args, **kwargs) if args or kwargs else explaining


def _as_captured(graph_module: GraphModule, example_inputs: Any) -> Any:
    return graph_module.forward


def _explanation(report: dynamo_capture.Report, result: Any) -> Explanation:
    replacements = [replacement for _, replacement in report.replacements]
    stops = [replacement.stopped for replacement in replacements if replacement.stopped is not None]
    return Explanation(
        graphs=tuple(r.graph for r in replacements if r.graph is not None),
        breaks=tuple(Break(s.kind.code, line_of_user(s.where), s.what, s.kind.advice) for s in stops),
        guards=tuple(tuple(map(guard_text, GuardSet(r.guards).guards)) for r in replacements),
        eager=tuple((code.co_qualname, reason) for code, reason in report.eager),
        result=result,
    )
