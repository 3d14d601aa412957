"""Options of one compilation: a frozen value, made from arguments and the environment, passed down and never global."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, replace
from numbers import Real
from pathlib import Path
from typing import Any, Literal, TypeAlias

from fx_interface.errors import StackError
from fx_interface.python_runtime.quick_dataclasses import dataclass
from fxstack.internal_errors import OnInternalError, default_policy

MODES = ("default", "strict")
"""Known values of ``mode``. ``default`` rounds each operator's result as eager does, and may keep more precision inside
an operator, never less. ``strict`` gives eager's bits on a CPU: generated code computes only what IEEE 754
fixes, everything else is done by the kernel that eager calls (``primtorch_decomps.STRICT``)."""


_RECORDED = ("reduce-overhead", "max-autotune")
"""Modes of ``torch.compile`` in which graphs on a GPU are recorded as CUDA graphs."""
_TUNED = ("max-autotune", "max-autotune-no-cudagraphs")
"""Modes of ``torch.compile`` in which kernels on a GPU are chosen by measuring."""


class OptionError(StackError, RuntimeError):
    """An argument of ``fxstack.compile`` has no meaning (codes FXS101-FXS103). A ``RuntimeError``, as torch's is."""


@dataclass(frozen=True, slots=True)
class Options:
    """What ``fxstack.compile(options=...)`` accepts, as a mapping or as this record.

    ``cache_dir``: where artifacts are kept. ``cache``: whether they are kept between processes at all.
    ``on_missing_compiler``: ``"error"`` raises IND111, ``"eager"`` warns and runs the captured graph with torch's own
    kernels. ``verify``: check every graph against its dialect between the passes. ``compiler``: the C++ compiler's
    command. ``activation_budget``: between 0 and 1, how much of what training keeps for the backward may be kept; what
    is not is computed again (``aot_autograd.partition.min_cut``). None keeps everything that the backward uses, or on a
    GPU what moves the fewest bytes (``least_traffic``).
    ``mode``: see ``MODES``; the argument of ``compile`` of that name goes before it. ``rng``: ``"eager"`` draws eager's
    random numbers; ``"counter"`` computes uniform numbers and dropout masks inside of kernels, from a seed drawn for
    each (``fxstack.counter_random``). ``on_internal_error``: what follows a defect of the compiler itself, ``"eager"``
    reports it and runs the program uncompiled, ``"raise"`` raises it; None is ``$FXSTACK_ON_INTERNAL_ERROR`` or eager.
    ``guard_filter_fn``: called with a list of entries, one for each guard of what was captured, it answers for each
    whether the guard is checked (``dynamo_capture.optimize``). ``check``: run each compiled graph beside eager once, on
    copies, before it is used (``fxstack.checking``); None is whether ``$FXSTACK_CHECK`` is ``1``. ``remote_cache``: the
    address of a cache that is asked for what ``cache_dir`` has not (``fxstack.cache``), and either
    ``remote_cache_key``, a file with the public key that must have signed its entries, or ``remote_cache_trusted``;
    None is ``$FXSTACK_REMOTE_CACHE`` and ``$FXSTACK_REMOTE_CACHE_KEY``. ``cuda_graphs``: graphs on a GPU are recorded
    as CUDA graphs when they are called again, and replayed; ``mode="reduce-overhead"`` asks for it too. ``True``
    records while no other thread of Python is alive, as one that draws random numbers on the GPU meanwhile would get an
    exception; ``"beside threads"`` says that none does, nor waits for the whole device. ``autotune``: on a GPU,
    tiles of matrix products, with what is computed from them, and launches of other kernels are chosen by measuring
    while compiling; ``mode="max-autotune"`` asks for it too. ``debug_kernels``: kernels are
    named by the lines of the program, and debuggers can step through their C++ (docs/observing.md); None is whether
    ``$FXSTACK_DEBUG_KERNELS`` is ``1``.
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
    guard_filter_fn: Callable[[Any], Iterable[bool]] | None = None
    remote_cache: str | None = None
    remote_cache_key: str | None = None
    remote_cache_trusted: bool = False
    cuda_graphs: bool | Literal["beside threads"] = False
    debug_kernels: bool | None = None
    autotune: bool = False

    @classmethod
    def make(cls, options: Options | Mapping[str, Any] | None, mode: str | None = None) -> Options:
        """Options from the user's arguments; what they leave out comes from the environment or a default."""
        if options is not None and not isinstance(options, Options | Mapping):
            raise OptionError(
                "FXS103",
                f"options is {options!r}",
                action="use a dict of options by name, or fxstack.Options",
            )
        made = options if isinstance(options, Options) else cls(**_as_ours(options or {}))
        check_choices({name: getattr(made, name) for name in _CHOICES}, _CHOICES)
        for name, (fits, wanted) in _TAKES.items():
            value = getattr(made, name)
            if value is not None and not fits(value):
                raise OptionError("FXS103", f"{name} is {value!r}", action=f"use {wanted}, or None")
        environment = {name: os.environ.get(name, "") for name in _VARIABLES}
        check_choices({f"${name}": value for name, value in environment.items()}, _VARIABLES)
        asked = made.mode if mode in (None, "default") else mode
        chosen = check_mode(asked)
        directory = Path(made.cache_dir) if made.cache_dir is not None else default_cache_dir()
        compiler = made.compiler or os.environ.get("CXX")
        policy = made.on_internal_error or default_policy()
        cache = made.cache and not _caches_are_off()
        check, debug = (
            environment[f"FXSTACK_{name.upper()}"] == "1"
            if getattr(made, name) is None
            else getattr(made, name)
            for name in ("check", "debug_kernels")
        )
        return replace(
            made,
            cache_dir=directory,
            cache=cache,
            compiler=compiler,
            mode=chosen,
            on_internal_error=policy,
            check=check,
            debug_kernels=debug,
            cuda_graphs=made.cuda_graphs or asked in _RECORDED,
            autotune=made.autotune or asked in _TUNED,
            remote_cache=made.remote_cache or os.environ.get("FXSTACK_REMOTE_CACHE") or None,
            remote_cache_key=made.remote_cache_key or os.environ.get("FXSTACK_REMOTE_CACHE_KEY") or None,
        )


def check_choices(given: Mapping[str, Any], choices: Mapping[str, tuple[Any, ...]]) -> None:
    """OptionError FXS103 if a value is none of the choices that its name has (in ``choices``, without the ``$`` of a
    variable of the environment)."""
    for name, value in given.items():
        possible = choices[name.removeprefix("$")]
        if not any(value is choice or value == choice for choice in possible):
            listed = " or ".join(repr(choice) for choice in possible)
            raise OptionError("FXS103", f"{name} is {value!r}", action=f"use {listed}")


_SWITCH = (True, False)
_CHOICES: dict[str, tuple[str | bool | None, ...]] = {
    "on_missing_compiler": ("error", "eager"),
    "rng": ("eager", "counter"),
    "on_internal_error": (None, "eager", "raise"),
    "check": (None, *_SWITCH),
    "debug_kernels": (None, *_SWITCH),
    "cache": _SWITCH,
    "verify": _SWITCH,
    "remote_cache_trusted": _SWITCH,
    "autotune": _SWITCH,
    "cuda_graphs": (*_SWITCH, "beside threads"),
}
ARGUMENTS: dict[str, tuple[bool | None, ...]] = dict.fromkeys(
    ("fullgraph", "dynamic", "disable", "isolate_recompiles"), (None, *_SWITCH)
)
"""What these arguments of ``fxstack.compile`` may be."""
_VARIABLES: dict[str, tuple[str, ...]] = {
    "FXSTACK_CHECK": ("", "0", "1"),
    "FXSTACK_DEBUG_KERNELS": ("", "0", "1"),
    "FXSTACK_ON_INTERNAL_ERROR": ("", "eager", "raise"),
}
"""Variables of the environment with few values, and these."""
_Fits: TypeAlias = Callable[[Any], bool]
_A_PATH: tuple[_Fits, str] = (lambda value: isinstance(value, str | os.PathLike), "a path")
_TAKES: dict[str, tuple[_Fits, str]] = {
    "cache_dir": _A_PATH,
    "compiler": (lambda value: isinstance(value, str), "a command, such as 'g++-13'"),
    "activation_budget": (
        lambda value: isinstance(value, Real) and 0.0 <= float(value) <= 1.0,
        "a number between 0 and 1",
    ),
    "guard_filter_fn": (callable, "a function of a list of guards"),
    "remote_cache": (lambda value: isinstance(value, str), "an address, such as 's3://bucket/cache'"),
    "remote_cache_key": _A_PATH,
}
"""Which values other than None an option takes, and in words."""


def default_cache_dir() -> Path:
    """``$FXSTACK_CACHE_DIR`` if set, else ``fxstack`` in the platform's cache folder."""
    named = os.environ.get("FXSTACK_CACHE_DIR")
    if named:
        return Path(named)
    from platformdirs import user_cache_path  # only where nothing is named

    return user_cache_path("fxstack")


def logged_topics() -> list[str]:
    """What ``$FXSTACK_LOGS`` asks to have logged: topics of ``fxstack.logging``, with commas between them."""
    return [name for name in os.environ.get("FXSTACK_LOGS", "").split(",") if name.strip()]


def check_mode(mode: str | None) -> str:
    """The mode of ours that is meant: ``mode`` itself, or the default for one of ``torch.compile``, with a warning
    where that promises more. OptionError FXS101 for any other."""
    if mode is None or mode in MODES:
        return mode or "default"
    from fxstack.torch_compile import arguments, translation  # tables that few programs need

    notes = translation.mode_notes(mode) if isinstance(mode, str) else None
    if notes is None:
        known = [*MODES, *(entry.name for entry in arguments.MODES if entry.name not in MODES)]
        advice = translation.nearest(str(mode), known)
        raise OptionError(
            "FXS101", f"unknown mode {mode!r}", action=f"{advice}use one of: {', '.join(known)}"
        )
    translation.say(notes)
    return "default"


def is_own_option(name: str) -> bool:
    """Whether this stack has an option of that name."""
    return name in {field.name for field in fields(Options)}


def _as_ours(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options of ours for what a user has passed: ours, and those of stock's code generator. OptionError FXS102 for an
    unknown one, which names the nearest; one warning for all that are taken and do something else."""
    known = sorted(field.name for field in fields(Options))
    ours = {name: value for name, value in options.items() if name in known}
    foreign = {name: value for name, value in options.items() if name not in known}
    if not foreign:
        return ours
    from fxstack.torch_compile import translation  # tables that few programs need

    notes: list[str] = []
    for name, value in foreign.items():
        found = translation.torch_option(str(name), value)
        if found is None:
            advice = translation.nearest(str(name), [*known, *translation.every_option()])
            raise OptionError(
                "FXS102",
                f"unknown option {name!r}",
                action=f"{advice}use one of: {', '.join(known)}, or of torch.compile's (docs/torch-compile.md)",
            )
        ours = {**found[0], **ours}
        notes += found[1]
    translation.say(notes)
    return ours


def _caches_are_off() -> bool:
    """Whether the user has switched off all caches of compiled code, in ``torch.compiler.config`` or by the variables
    of the environment that it reads."""
    config = sys.modules.get("torch.compiler.config")
    return bool(getattr(config, "force_disable_caches", False))
