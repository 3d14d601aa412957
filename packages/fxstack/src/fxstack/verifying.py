"""``fxstack.verify(fn)(*args)``: eager, eager in float64 as the referee, and compiled, on the same call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any, overload

from torch.fx import GraphModule

import dynamo_capture
from fx_interface import Backend, CompiledGraph
from fx_interface.python_runtime.quick_dataclasses import dataclass
from fxstack.backends import resolve
from fxstack.compile import original_callable
from fxstack.options import Options
from fxstack.verification.bisect import Case, find_culprit
from fxstack.verification.report import Verification
from fxstack.verification.repro import repro_script
from fxstack.verification.shorten import shortened
from fxstack.verification.state import restored, state_of
from fxstack.verification.trial import Trial, compare_trials, snapshot
from primtorch_decomps import LIBRARY

_SEED = 20


@dataclass(slots=True)
class _Watched:
    """A backend that compiles by another one, and notes each graph's first call."""

    compile: Backend | Callable[..., Any]
    cases: list[tuple[Case, CompiledGraph]] = field(default_factory=list)

    def __call__(self, graph_module: GraphModule, example_inputs: Sequence[Any]) -> CompiledGraph:
        run = self.compile(graph_module, example_inputs)
        noted = False

        def call(*inputs: Any) -> Sequence[Any]:
            nonlocal noted
            if not noted:
                noted = True
                case = Case(graph_module, tuple(snapshot(inputs)), self.compile, _SEED)
                self.cases.append((case, run))
            return run(*inputs)

        return call


@overload
def verify(
    function: Callable[..., Any],
    /,
    *,
    backend: str | Backend | Callable[..., Any] = ...,
    dynamic: bool | None = ...,
    options: Options | Mapping[str, Any] | None = ...,
    repro: str | Path | None = ...,
) -> Callable[..., Verification]: ...


@overload
def verify(
    function: Callable[..., Any],
    first: Any,
    /,
    *args: Any,
    backend: str | Backend | Callable[..., Any] = ...,
    dynamic: bool | None = ...,
    options: Options | Mapping[str, Any] | None = ...,
    repro: str | Path | None = ...,
    **kwargs: Any,
) -> Verification: ...


def verify(
    function: Callable[..., Any],
    /,
    *args: Any,
    backend: str | Backend | Callable[..., Any] = "inductor",
    dynamic: bool | None = None,
    options: Options | Mapping[str, Any] | None = None,
    repro: str | Path | None = None,
    **kwargs: Any,
) -> Callable[..., Verification] | Verification:
    """A callable that runs ``function`` three times on its arguments (eager, in float64, compiled) and compares.

    Results, the gradients of arguments, parameters and tensors that the function's closure holds, and what the call
    wrote to these and to their ``.grad`` may be as far from float64 as eager's by a small factor (``compare.MARGIN``).
    ``function`` may be a whole training step, with its backward and its optimizer. On a difference, the first operator
    that differs is looked for by compiling shorter and shorter graphs, and a script that shows it, with as few
    operators as were found to fail, is written to ``repro``, if given.

    The arguments, the module's parameters and buffers, gradients, the state of optimizers, schedulers and scalers that
    the function names or its object holds, and the random state are afterwards what they were.
    ``verify(model, x)`` is ``verify(model)(x)``, for arguments that have no name of the above. TypeError for what
    cannot be called.
    """
    plain = original_callable(function)
    compiler = resolve(backend, replace(Options.make(options), check=False))

    def run(*args: Any, **kwargs: Any) -> Verification:
        watched = _Watched(compiler)
        compiled = dynamo_capture.optimize(watched, dynamic=dynamic, operators=LIBRARY)(plain)
        state = state_of(plain, args, kwargs)
        with restored(state) as restore:

            def set_up(call: Callable[..., Any]) -> Trial:
                restore()
                return Trial(lambda: call(*args, **kwargs), state.leaves, [*state.tensors.items()])

            found, referee = compare_trials(lambda: set_up(plain), lambda: set_up(compiled), _SEED)
            made = Verification(
                len(watched.cases), tuple(found), unreferred=tuple(sorted(referee.unreferred))
            )
            return made if made.ok else _blamed(made, watched, backend, repro)

    return run(*args, **kwargs) if args or kwargs else run


def _blamed(
    found: Verification, watched: _Watched, backend: str | Callable[..., Any], repro: str | Path | None
) -> Verification:
    """The verification with the first operator that differs, and a repro script."""
    for case, compiled in watched.cases:
        if not case.differences(compiled):
            continue
        culprit = find_culprit(case)
        if culprit is None:
            continue
        culprit = replace(culprit, case=shortened(culprit.case))
        script = repro_script(culprit, backend)
        path = None if repro is None else Path(repro)
        if path is not None:
            path.write_text(script, encoding="utf-8", errors="backslashreplace")
        return Verification(
            found.graphs,
            found.differences,
            culprit.operator,
            culprit.stack,
            culprit.difference,
            script,
            path,
            found.unreferred,
        )
    return found
