"""Options of one compilation: a frozen value, made from arguments and the environment, passed down and never global."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Literal

from platformdirs import user_cache_path

from fx_interface.errors import StackError
from fx_interface.python_runtime.quick_dataclasses import dataclass
from fxstack.internal_errors import OnInternalError, default_policy

MODES = ("default", "strict")
"""Known values of ``mode``. ``default`` rounds each operator's result as eager does, and may keep more precision inside
an operator, never less. ``strict`` gives eager's bits on a CPU: generated code computes only what IEEE 754
fixes, everything else is done by the kernel that eager calls (``primtorch_decomps.STRICT``)."""


class OptionError(StackError):
    """An argument of ``fxstack.compile`` has no meaning (codes FXS101-FXS103)."""


@dataclass(frozen=True, slots=True)
class Options:
    """What ``fxstack.compile(options=...)`` accepts, as a mapping or as this record.

    ``cache_dir``: where artifacts are kept. ``cache``: whether they are kept between processes at all.
    ``on_missing_compiler``: ``"error"`` raises IND111, ``"eager"`` warns and runs the captured graph with torch's own
    kernels. ``verify``: check every graph against its dialect between the passes. ``compiler``: the C++ compiler's
    command. ``activation_budget``: between 0 and 1, how much of what training keeps for the backward may be kept; what
    is not is computed again (``aot_autograd.partition.min_cut``). None keeps everything that the backward uses.
    ``mode``: see ``MODES``; the argument of ``compile`` of that name goes before it. ``rng``: ``"eager"`` draws eager's
    random numbers; ``"counter"`` computes uniform numbers and dropout masks inside of kernels, from a seed drawn for
    each (``fxstack.counter_random``). ``on_internal_error``: what follows a defect of the compiler itself, ``"eager"``
    reports it and runs the program uncompiled, ``"raise"`` raises it; None is ``$FXSTACK_ON_INTERNAL_ERROR`` or eager.
    ``check``: run each compiled graph beside eager once, on copies, before it is used (``fxstack.checking``); None is
    whether ``$FXSTACK_CHECK`` is ``1``.
    """

    cache_dir: Path | None = None
    cache: bool = True
    on_missing_compiler: Literal["error", "eager"] = "error"
    verify: bool = False
    compiler: str | None = None
    activation_budget: float | None = None
    mode: str = "default"
    rng: Literal["eager", "counter"] = "eager"
    on_internal_error: OnInternalError | None = None
    check: bool | None = None

    @classmethod
    def make(cls, options: Options | Mapping[str, Any] | None, mode: str = "default") -> Options:
        """Options from the user's arguments; what they leave out comes from the environment or a default."""
        if isinstance(options, Options):
            made = options
        else:
            known = {field.name for field in fields(cls)}
            unknown = sorted(set(options or {}) - known)
            if unknown:
                raise OptionError(
                    "FXS102",
                    f"unknown option {unknown[0]!r}",
                    action=f"use one of: {', '.join(sorted(known))}",
                )
            made = cls(**(options or {}))
        for name, choices in _CHOICES.items():
            value = getattr(made, name)
            if value not in choices:
                listed = " or ".join(repr(choice) for choice in choices)
                raise OptionError("FXS103", f"{name} is {value!r}", action=f"use {listed}")
        budget = made.activation_budget
        if budget is not None and not 0.0 <= budget <= 1.0:
            raise OptionError(
                "FXS103", f"activation_budget is {budget!r}", action="use a number between 0 and 1, or None"
            )
        chosen = check_mode(made.mode if mode == "default" else mode)
        directory = Path(made.cache_dir) if made.cache_dir is not None else default_cache_dir()
        compiler = made.compiler or os.environ.get("CXX")
        policy = made.on_internal_error or default_policy()
        check = os.environ.get("FXSTACK_CHECK") == "1" if made.check is None else made.check
        return replace(
            made,
            cache_dir=directory,
            compiler=compiler,
            mode=chosen,
            on_internal_error=policy,
            check=check,
        )


_CHOICES: dict[str, tuple[str | bool | None, ...]] = {
    "on_missing_compiler": ("error", "eager"),
    "rng": ("eager", "counter"),
    "on_internal_error": (None, "eager", "raise"),
    "check": (None, True, False),
}


def default_cache_dir() -> Path:
    """``$FXSTACK_CACHE_DIR`` if set, else ``fxstack`` in the platform's cache folder."""
    named = os.environ.get("FXSTACK_CACHE_DIR")
    return Path(named) if named else user_cache_path("fxstack")


def check_mode(mode: str) -> str:
    """``mode`` if it is known; OptionError FXS101 otherwise."""
    if mode not in MODES:
        raise OptionError("FXS101", f"unknown mode {mode!r}", action=f"use one of: {', '.join(MODES)}")
    return mode
