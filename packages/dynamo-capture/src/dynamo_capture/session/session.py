"""What all captures under one ``optimize`` share."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import field
from types import CodeType
from typing import Any

from dynamo_capture.bytecode.resume.code import ResumeCodes
from dynamo_capture.guard_kinds.guard_filter import GuardFilter
from dynamo_capture.hook.frame_hook import RegionFunction
from dynamo_capture.session.known_functions import KnownFunctions
from dynamo_capture.session.refusals import Refusals
from dynamo_capture.session.report import Report
from dynamo_capture.session.size_history import SizeHistory, Varying
from fx_interface.operators import OperatorLibrary
from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.source import HandedOn
from fx_interface.torch_internals.function_levels import Level


@dataclass(slots=True)
class Session:
    """What all captures under one ``optimize`` share. What belongs to a code object is kept by identity: equal code
    may be another function's. ``without_data``: code whose graphs end where a size or number comes from data;
    ``varying``: what of a code's variables was a symbol where a graph ended; ``open_sizes``: what sizes that vary were
    when replacement code was made, for what that code calls; ``leaves_apart``: where the program asks for gradients of
    a tensor that it made; ``refused_in_modes``: what could not be captured in a TorchFunctionMode,
    ``refused_in_transforms`` in which transforms of ``torch.func``; ``seen_once``: code
    that ran uncompiled because the stance says that its first call does; ``shown``: what profilers show for a
    target; ``alone`` makes, of a session, what compiles a function as one graph with the same options and does not hold
    the session, which dies with its functions; ``handed_on``: what users call the arguments that a target passes
    on."""

    backend: Callable[..., Any]
    library: OperatorLibrary
    fullgraph: bool = False
    dynamic: bool | None = None
    memo: dict[Any, Any] = field(default_factory=dict)
    report: Report = field(default_factory=Report)
    resumes: ResumeCodes = field(default_factory=ResumeCodes)
    histories: dict[int, SizeHistory] = field(default_factory=dict)
    varying: dict[int, tuple[CodeType, Varying]] = field(default_factory=dict)
    open_sizes: dict[int, tuple[CodeType, frozenset[int]]] = field(default_factory=dict)
    failures: dict[int, int] = field(default_factory=dict)
    targets: dict[int, CodeType] = field(default_factory=dict)
    shown: dict[int, str] = field(default_factory=dict)
    handed_on: dict[int, HandedOn] = field(default_factory=dict)
    without_data: dict[int, CodeType] = field(default_factory=dict)
    leaves_apart: dict[int, CodeType] = field(default_factory=dict)
    refused_in_modes: dict[int, CodeType] = field(default_factory=dict)
    refused_in_transforms: dict[tuple[int, tuple[Level, ...]], CodeType] = field(default_factory=dict)
    alone: Callable[[Session], Callable[[Callable[..., Any]], Callable[..., Any]]] | None = None
    waits: bool = True
    limit_is_stated: bool = False
    weighs_arrays: bool = False
    guard_filter: GuardFilter | None = None
    seen_once: dict[int, CodeType] = field(default_factory=dict)
    functions: KnownFunctions = field(default_factory=KnownFunctions)
    locks: dict[int, threading.RLock] = field(default_factory=dict)
    refusals: Refusals = field(default_factory=Refusals)

    def takes_in(self, function: RegionFunction) -> bool:
        """Whether a call of an optimized function is captured here. Of one that is to be a single graph it is a part
        whatever its options are, as in stock's compiler; else the same backend, operators and options are needed."""
        other = getattr(function, "__fxstack_capture__", None)
        return isinstance(other, Session) and (
            other is self
            or self.fullgraph
            or (
                other.library is self.library
                and _options(other) == _options(self)
                and not other.fullgraph
                and other.waits == self.waits
            )
        )

    def reset(self) -> None:
        """Forget reports, resume functions and which sizes vary."""
        self.resumes.clear()
        self.report = Report()
        self.histories.clear()
        self.varying.clear()
        self.open_sizes.clear()
        self.failures.clear()
        self.refusals.clear()
        self.without_data.clear()
        self.leaves_apart.clear()
        self.refused_in_modes.clear()
        self.refused_in_transforms.clear()
        self.seen_once.clear()
        self.functions.clear()


def _options(session: Session) -> tuple[Any, bool | None]:
    return session.backend, session.dynamic
