"""One file for processors and GPUs: a model is exported on each device, and each entry point has both exports."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import torch
from torch import nn
from torch.utils import _pytree as pytree

from fxstack.artifacts.contract import Contract, contract_of
from fxstack.artifacts.errors import ExportError
from fxstack.artifacts.exporting import Exported
from fxstack.compile import original
from fxstack_artifact import _native
from fxstack_artifact.container.manifest import has_both, is_of_gpu
from fxstack_artifact.container.targets import gpu_targets

CPU_TARGETS = ("x86-64-v4", "x86-64-v3", "x86-64-v2", "x86-64", "armv8-a")
"""Processor levels that native objects can be made for; those of x86-64 are the psABI's."""
GPU_TARGETS = ("sm_90", "sm_89", "sm_86", "sm_80")
"""Architectures of GPUs, likewise."""
Entries: TypeAlias = dict[str, tuple[Exported, Contract]]
"""The exports of a device, by the names of the entry points."""
Export: TypeAlias = Callable[[Any, Sequence[Any], Mapping[str, Any]], Exported]


def exports_for(
    model: Any,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    target: str | Sequence[str] | None,
    export: Export,
) -> tuple[Exported, ...]:
    """``model`` exported where it lies; for targets of both kinds also a copy of it, and its arguments, on the other
    device. ExportError FXS509 if there is no GPU for it."""
    model = original(model)
    first = export(model, args, kwargs)
    if target is None or isinstance(target, str) or not has_both(target):
        return (first,)
    there = torch.device("cpu") if contract_of(first).is_on_gpu else torch.device("cuda", 0)
    if there.type == "cuda" and not torch.cuda.is_available():
        raise ExportError(
            "FXS509",
            f"a model is captured on each device that it is compiled for, and there is no GPU for {target}",
            action="write the file on a machine with a GPU, of any architecture, or leave its targets out",
        )
    moved = copy.deepcopy(model).to(there) if isinstance(model, nn.Module) else model
    given, named = pytree.tree_map_only(
        torch.Tensor, lambda leaf: _on(leaf, there), (tuple(args), dict(kwargs))
    )
    return first, export(moved, given, named)


def _on(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    return tensor.detach().to(device).requires_grad_(tensor.requires_grad)


def by_device(exports: Mapping[str, Sequence[Exported]]) -> dict[bool, Entries]:
    """The exports on processors (False) and on GPUs (True), where there are any. ExportError FXS509 where entry points
    are on different devices."""
    found: dict[bool, Entries] = {}
    for name, several in exports.items():
        for exported in several:
            contract = contract_of(exported)
            entries = found.setdefault(contract.is_on_gpu, {})
            if name in entries:
                raise ExportError(
                    "FXS509", f"{name} has two exports on one device", action="pass one for each device"
                )
            entries[name] = exported, contract
    for on_gpu, entries in found.items():
        missing = exports.keys() - entries.keys()
        if missing:
            raise ExportError(
                "FXS509",
                f"entry point {min(entries)} is on a {'GPU' if on_gpu else 'CPU'} and {min(missing)} is not",
                action="write a file for each device, or pass exports on both for each entry point: "
                '{"forward": [on_cpu, on_gpu]}',
            )
    return {on_gpu: found[on_gpu] for on_gpu in sorted(found)}


def targets_of(target: str | Sequence[str] | None, kinds: Sequence[bool]) -> dict[bool, tuple[str, ...]]:
    """For processors (False) and GPUs (True), as far as they are among ``kinds``, the targets that are meant, the best
    first. ExportError FXS509 for unknown ones, or if there are none."""
    if target is None:
        return {on_gpu: tuple((gpu_targets if on_gpu else _native.cpu_levels)()[:1]) for on_gpu in kinds}
    named = [target] if isinstance(target, str) else list(target)
    known = {on_gpu: GPU_TARGETS if on_gpu else CPU_TARGETS for on_gpu in kinds}
    unknown = [name for name in named if name not in known.get(is_of_gpu(name), ())]
    found = {on_gpu: tuple(name for name in names if name in named) for on_gpu, names in known.items()}
    if unknown or not all(found.values()):
        model = "a model on both" if len(kinds) > 1 else f"a model on a {'GPU' if kinds[0] else 'CPU'}"
        missing = " and ".join("GPU" if on_gpu else "CPU" for on_gpu, names in found.items() if not names)
        raise ExportError(
            "FXS509",
            f"unknown target {', '.join(unknown)} of {model}"
            if unknown
            else f"no target of {model} is for a {missing}",
            action=f"use {' and '.join('one of ' + ', '.join(names) for names in known.values())}",
        )
    return found
