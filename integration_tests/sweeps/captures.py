"""What is done with one tiny model: captured by us and by stock, resized, and run through the whole stack."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import torch
from comparing import difference, leaves, seeded
from mistakes import mistakes
from tiny_models import TinyModel

CALLS = 2
RESIZED = ((3, 16), (4, 20), (5, 24))
"""Batch sizes and sequence lengths of the later calls; the first is (2, 12)."""


@dataclass(slots=True)
class Outcome:
    """One architecture in one way. ``failure`` is empty where all calls equalled eager's; ``graphs`` counts those of
    the first call, ``more`` those that each later size brought; ``again``: why a third or later size was compiled
    again, as the last guard that failed says. ``asks``: the model asks ``torch.compiler.is_compiling()`` and then
    computes something else; it equals eager where eager is told yes."""

    name: str
    capture: str
    failure: str = ""
    graphs: int = 0
    breaks: list[str] = field(default_factory=list)
    seconds: float = 0.0
    more: list[int] = field(default_factory=list)
    asks: bool = False
    again: str = ""


def compare(tiny: TinyModel, name: str, capture: str, compile: Callable[..., Any]) -> Outcome:
    """Call the model eagerly and captured, ``CALLS`` times each with the same seed."""
    outcome = Outcome(name, capture)
    graphs: list[Any] = []

    def backend(graph_module: Any, example_inputs: Any) -> Any:
        graphs.append(graph_module)
        return graph_module.forward

    with torch.no_grad():
        expected = [seeded(tiny.model, tiny.inputs) for _ in range(CALLS)]
        if difference(expected[0], expected[1]):
            outcome.failure = "left out: eager differs from itself"
            return outcome
        start = time.perf_counter()
        try:
            captured = compile(tiny.model, backend)
            found = [seeded(captured, tiny.inputs)]
            outcome.seconds = time.perf_counter() - start
            outcome.graphs = len(graphs)
            found += [seeded(captured, tiny.inputs) for _ in range(CALLS - 1)]
        except Exception as error:
            outcome.failure = f"raised {type(error).__name__}: {str(error)[:300]}"
            return outcome
        outcome.failure = _first_difference(found, expected)
        if outcome.failure:
            told = [_told(tiny.model, tiny.inputs) for _ in range(CALLS)]
            outcome.asks = not _first_difference(found, told) and bool(_first_difference(told, expected))
            outcome.failure = "" if outcome.asks else outcome.failure
        if not outcome.failure:
            reference = _told if outcome.asks else seeded
            outcome.failure, outcome.more = _resized(tiny, captured, graphs, reference)
    return outcome


def _first_difference(found: list[Any], expected: list[Any]) -> str:
    return next(filter(None, map(difference, found, expected)), "")


def _told(function: Any, inputs: dict[str, Any]) -> Any:
    """What eager gives where it is told that it is compiled."""
    with mock.patch("torch.compiler.is_compiling", return_value=True):
        return seeded(function, inputs)


def _resized(
    tiny: TinyModel, captured: Any, graphs: list[Any], reference: Callable[[Any, Any], Any]
) -> tuple[str, list[int]]:
    """Calls with other sizes: what differs, and how many graphs each brought."""
    more: list[int] = []
    for batch, length in RESIZED:
        inputs = tiny.resized(batch, length)
        if inputs is None:
            continue
        expected, before = reference(tiny.model, inputs), len(graphs)
        try:
            different = difference(seeded(captured, inputs), expected)
        except Exception as error:
            different = f"raised {type(error).__name__}: {str(error)[:300]}"
        more.append(len(graphs) - before)
        if different:
            return f"resized to {batch} x {length}: {different}", more
    return "", more


def ours(tiny: TinyModel, name: str) -> Outcome:
    """Under ``dynamo_capture``."""
    import dynamo_capture
    from primtorch_decomps import LIBRARY

    kept: list[Any] = []

    def compile(model: Any, backend: Any) -> Any:
        kept.append(dynamo_capture.optimize(backend, operators=LIBRARY))
        return kept[0](model)

    outcome = compare(tiny, name, "fxstack", compile)
    if kept:
        report = kept[0].report
        stops = (replacement.stopped for _, replacement in report.replacements)
        outcome.breaks = [f"{s.kind.code} {s.where}: {s.what}" for s in stops if s is not None]
        outcome.breaks += [f"runs eagerly: {code.co_qualname}: {reason}" for code, reason in report.eager]
        if sum(outcome.more[1:]):
            outcome.again = _last_reason(report)
    dynamo_capture.reset()
    return outcome


def _last_reason(report: Any) -> str:
    """The guard that failed when code was compiled again, of a size's relation rather than of the size itself."""
    found = list(report.recompilations.values())
    relations = [entry for entry in found if "needed at" in entry.reason]
    last = (relations or found)[-1:]
    return "; ".join(f"{entry.reason} (relied on at {entry.where})" for entry in last)


def stock(tiny: TinyModel, name: str) -> Outcome:
    """Under ``torch.compile``'s capture."""
    import torch._dynamo as dynamo

    dynamo.reset()
    dynamo.utils.counters.clear()
    outcome = compare(tiny, name, "stock", lambda model, backend: torch.compile(model, backend=backend))
    outcome.breaks = [str(reason).splitlines()[0] for reason in dynamo.utils.counters["graph_break"]]
    dynamo.reset()
    return outcome


def whole_stack(tiny: TinyModel, name: str) -> Outcome:
    """``fxstack.compile``: results without autograd, then results and gradients of parameters with it."""
    import fxstack

    outcome = Outcome(name, "stack")
    try:
        exact = _exact(tiny)
        start = time.perf_counter()
        with torch.no_grad():
            expected = seeded(tiny.model, tiny.inputs)
            with mistakes() as logged:
                found = seeded(fxstack.compile(tiny.model), tiny.inputs)
            reference = None if exact is None else seeded(exact.model, exact.inputs)
        outcome.failure = difference(found, expected, reference)
        if not outcome.failure:
            try:
                trained = _trained(tiny.model, tiny)
            except Exception as error:
                outcome.failure = f"left out: eager raised {type(error).__name__}"
                return outcome
            reference = None if exact is None else _trained(exact.model, exact)
            with mistakes() as logged_training:
                found = _trained(fxstack.compile(tiny.model), tiny)
            different = difference(found, trained, reference)
            logged += logged_training
            outcome.failure = f"training: {different}" if different else ""
        outcome.failure = outcome.failure or next(iter(logged), "")
        outcome.seconds = time.perf_counter() - start
    except Exception as error:
        outcome.failure = f"raised {type(error).__name__}: {str(error)[:300]}"
    fxstack.reset()
    return outcome


def _exact(tiny: TinyModel) -> TinyModel | None:
    """The model and its inputs in float64, if it runs like that."""
    inputs = {
        key: value.double() if isinstance(value, torch.Tensor) and value.is_floating_point() else value
        for key, value in tiny.inputs.items()
    }
    try:
        made = TinyModel(copy.deepcopy(tiny.model).double(), inputs)
        with torch.no_grad():
            seeded(made.model, inputs)
    except Exception:
        return None
    return made


def _trained(function: Any, tiny: TinyModel) -> dict[str, Any]:
    """The results with autograd, and the parameters' gradients of a weighted sum of them."""
    tiny.model.zero_grad()
    results = seeded(function, tiny.inputs)
    loss: Any = 0.0
    for _, leaf in leaves(results):
        if isinstance(leaf, torch.Tensor) and leaf.requires_grad and leaf.is_floating_point():
            loss = (
                loss
                + (leaf * torch.linspace(0.5, 1.5, leaf.numel(), dtype=leaf.dtype).view(leaf.shape)).mean()
            )
    if isinstance(loss, torch.Tensor):
        loss.backward()
    grads = {key: p.grad.clone() for key, p in tiny.model.named_parameters() if p.grad is not None}
    tiny.model.zero_grad()
    return {"gradients": grads, "loss": loss.detach() if isinstance(loss, torch.Tensor) else loss}
