"""One trial inside of a process: the program eagerly, then compiled, from equal starting states."""

from __future__ import annotations

import contextlib
import importlib
import linecache
import re
import runpy
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import fxstack
from fx_interface.python_runtime.quick_dataclasses import dataclass
from fxstack.minify.observing import Observation, calls_of, observe
from fxstack.minify.outcomes import Outcome
from fxstack.verification.compare import difference
from fxstack.verification.referee import Referee

_CODE = re.compile(r"\b[A-Z]{3}\d{3}\b")
_STEPS = 9


@dataclass(frozen=True, slots=True)
class Settings:
    """How the program is compiled. ``backend``: a backend's name, or ``module:function``. ``slower_than``: the times of
    eager that a compiled call must take to be called slow (None: time is not looked at)."""

    backend: str = "inductor"
    dynamic: bool | None = None
    fullgraph: bool = False
    slower_than: float | None = None


def outcome_of_program(text: str, file: Path, settings: Settings) -> Outcome:
    """Compare ``program`` of the text with itself compiled, on ``INPUTS`` or ``CALLS``."""
    try:
        eager = observe(_executed(text, file), _same)
    except Exception as error:
        return Outcome("invalid", type(error).__qualname__, str(error))
    if eager.error is not None and _is_slip(eager.error):
        return Outcome("invalid", type(eager.error).__qualname__, str(eager.error))
    try:
        compiled = observe(_executed(text, file), lambda program: _compiled(program, settings))
    except Exception as error:  # the calls' own exceptions are noted
        return _error(error)
    if compiled.error is not None and eager.error is None:
        return _error(compiled.error)
    found = _first_difference(eager, compiled)
    if found is not None:  # rounding alone is no difference: float64 says how far eager is
        found = _first_difference(observe(_executed(text, file), _same, Referee()), compiled)
    if found is None and settings.slower_than is not None:
        return _speed(text, file, settings)
    return found or Outcome("ok")


def outcome_of_script(file: Path, settings: Settings) -> Outcome:
    """Run a whole script with compilation off, then on: it must end well the first time."""
    arguments, sys.argv = sys.argv, [str(file)]
    try:
        with fxstack.in_place_of_torch_compile():
            with fxstack.set_stance("force_eager"):
                plain = _ending(file)
            if plain is not None:
                return Outcome("invalid", type(plain).__qualname__, str(plain))
            error = _ending(file)
            return Outcome("ok") if error is None else _error(error)
    finally:
        sys.argv = arguments


def _ending(file: Path) -> BaseException | None:
    """What a run of the script as ``__main__`` ends with; None if it ends well."""
    torch.manual_seed(0)
    try:
        runpy.run_path(str(file), run_name="__main__")
    except SystemExit as error:
        return error if error.code not in (None, 0) else None
    except Exception as error:
        return error
    return None


def _error(error: BaseException) -> Outcome:
    code = _CODE.search(str(error))
    what = f"{type(error).__qualname__} {code[0]}" if code else type(error).__qualname__
    return Outcome("error", what, (str(error).splitlines() or [""])[0])


def _is_slip(error: BaseException) -> bool:
    """Whether a program that ends with this error is most likely one from which too much was taken away."""
    return isinstance(error, (NameError, AttributeError, TypeError, SyntaxError, ImportError))


def _same(program: Any) -> Any:
    return program


def _executed(text: str, file: Path) -> dict[str, Any]:
    torch.manual_seed(0)
    namespace: dict[str, Any] = {"__name__": file.stem, "__file__": str(file)}
    linecache.checkcache(str(file))
    exec(compile(text, str(file), "exec"), namespace)
    calls_of(namespace)
    return namespace


def _compiled(program: Any, settings: Settings) -> Any:
    return fxstack.compile(
        program,
        backend=backend_named(settings.backend),
        dynamic=settings.dynamic,
        fullgraph=settings.fullgraph,
        options={"on_internal_error": "raise"},
    )


def backend_named(name: str) -> str | Callable[..., Any]:
    """A backend's name as it is, or the function that ``module:function`` names."""
    module, colon, function = name.partition(":")
    found: Callable[..., Any] | str = getattr(importlib.import_module(module), function) if colon else name
    return found


def _first_difference(eager: Observation, compiled: Observation) -> Outcome | None:
    for key, value in eager.values.items():
        kind, name = key
        if key not in compiled.values:
            return Outcome("wrong", kind, f"{name} is missing")
        other = compiled.values[key]
        if isinstance(value, Tensor) and isinstance(other, Tensor):
            found = _apart(name, value, eager.exact.get(key), other)
        else:
            found = None if _equal(value, other) else f"{name}: {other!r} instead of {value!r}"
        if found is not None:
            return Outcome("wrong", kind, found)
    return None


def _apart(name: str, eager: Tensor, exact: Tensor | None, compiled: Tensor) -> str | None:
    """In what two tensors differ: to the bit where no float64 counterpart is known."""
    if exact is None:
        if eager.shape != compiled.shape or eager.dtype != compiled.dtype:
            return f"{name} differs"
        same = (eager == compiled) | ((eager != eager) & (compiled != compiled))
        return None if bool(same.all()) else f"{name} differs"
    found = difference(name, eager, exact, compiled)
    return None if found is None else str(found)


def _equal(one: Any, other: Any) -> bool:
    return type(one) is type(other) and bool(one == other or one != one)


def _speed(text: str, file: Path, settings: Settings) -> Outcome:
    """Whether calls of the compiled program take longer than allowed, all of ``CALLS`` together, by the medians of
    rounds that alternate. What is compiled in the first rounds does not count."""
    plain, fast = _executed(text, file), _executed(text, file)
    compiled = _compiled(fast["program"], settings)
    runs: Mapping[str, tuple[Callable[..., Any], Any]] = {
        "eager": (plain["program"], calls_of(plain)),
        "compiled": (compiled, calls_of(fast)),
    }
    times: dict[str, list[float]] = {name: [] for name in runs}
    with contextlib.redirect_stdout(None):
        for step in range(_STEPS + 2):
            for name, (run, calls) in runs.items():
                start = time.perf_counter()
                for args in calls:
                    run(*args)
                if step > 1:
                    times[name].append(time.perf_counter() - start)
    ratio = statistics.median(times["compiled"]) / statistics.median(times["eager"])
    assert settings.slower_than is not None
    if ratio <= settings.slower_than:
        return Outcome("ok", detail=f"calls take {ratio:.2f} times eager's time")
    return Outcome("slow", detail=f"calls take {ratio:.2f} times eager's time")
