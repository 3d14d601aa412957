"""Stored programs: how a compiled program is named, written and read back."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch.fx import GraphModule

import aot_autograd
import fx_interface
import inductor_codegen
import primtorch_decomps
from aot_autograd.plan import JointPlan
from aot_autograd.plan_json import plan_from_data, plan_to_data
from fx_interface import CorruptArtifactError, SymSpec, UnsupportedProgramError, canonical_hash, signature_of
from fx_interface.encoding import decode_expr, encode_expr
from fx_interface.symbols import Relation, ShapeEnv, ShapeGuard
from fxstack.options import Options
from inductor_codegen.cache import ArtifactStore, content_key
from inductor_codegen.native import load_graph
from inductor_codegen.toolchain import processor

logger = logging.getLogger("fxstack")
_FORMAT = 1


@dataclass(frozen=True, slots=True)
class StoredProgram:
    """A compiled program. ``guards`` are the relations between sizes that its compilation recorded."""

    plan: JointPlan
    forward: Any
    backward: Any | None
    guards: tuple[ShapeGuard, ...]


def program_key(
    graph_module: GraphModule, example_inputs: Sequence[Any], options: Options | None = None
) -> str | None:
    """The name under which the compiled program is kept; None for a graph that has no stable form."""
    try:
        form = canonical_hash(graph_module)
    except UnsupportedProgramError as error:
        logger.info("a graph is not kept in the cache: %s", error)
        return None
    signature = signature_of(graph_module)
    declared = () if signature is None else signature.inputs
    names = " ".join(str(decl.spec.expr) for decl in declared if isinstance(decl.spec, SymSpec))
    trained = "".join(str(int(isinstance(x, torch.Tensor) and x.requires_grad)) for x in example_inputs)
    chosen = options or Options()
    choices = f"{chosen.activation_budget} {chosen.mode} {chosen.rng}"
    return content_key("program", str(_FORMAT), form, names, trained, choices, _state(), _toolchain())


def _state() -> str:
    """The caller's state that tracing depends on."""
    facts = (
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        torch.get_default_dtype(),
        torch.are_deterministic_algorithms_enabled(),
        torch.is_autocast_enabled("cpu"),
        torch.get_autocast_dtype("cpu"),
        torch.is_autocast_enabled("cuda"),
        torch.get_autocast_dtype("cuda"),
        torch.backends.cuda.flash_sdp_enabled(),  # type: ignore[no-untyped-call]
        torch.backends.cuda.mem_efficient_sdp_enabled(),  # type: ignore[no-untyped-call]
        torch.backends.cuda.math_sdp_enabled(),  # type: ignore[no-untyped-call]
        torch.backends.mkldnn.enabled,
    )
    return repr(facts)


@cache
def _toolchain() -> str:
    """torch, the processor, and the very files of the packages that compile."""
    parts = [torch.__version__, processor()]
    for package in (fx_interface, aot_autograd, primtorch_decomps, inductor_codegen):
        parts.append(package.__version__)
        for folder, _, files in sorted(os.walk(Path(str(package.__file__)).parent)):
            for name in sorted(files):
                if name.endswith((".py", ".so")):
                    status = os.stat(os.path.join(folder, name))
                    parts.append(f"{name} {status.st_size} {status.st_mtime_ns}")
    return content_key(*parts)


def store_program(key: str, program: StoredProgram, store: ArtifactStore) -> None:
    """Keep a program; one that has no stored form is not kept, and a folder that cannot be written is logged."""
    try:
        metadata = {
            "plan": plan_to_data(program.plan),
            "forward": program.forward.artifact_key,
            "backward": None if program.backward is None else program.backward.artifact_key,
            "guards": [
                [guard.relation.op, encode_expr(guard.relation.lhs), encode_expr(guard.relation.rhs)]
                for guard in program.guards
            ],
        }
        store.put(key, metadata)
    except UnsupportedProgramError as error:
        logger.info("a program is not kept in the cache: %s", error)
    except OSError as error:
        logger.warning("a program could not be kept in the cache %s: %s", store.folder, error)


def load_program(key: str, env: ShapeEnv | None, store: ArtifactStore) -> StoredProgram | None:
    """The program under ``key``, if it is there, whole, and made for sizes like the present ones.

    Its relations between sizes are recorded in ``env``, as compiling would have.
    """
    found = store.get(key)
    if found is None:
        return None
    try:
        metadata = found.metadata
        guards = tuple(
            ShapeGuard(Relation(op, decode_expr(lhs), decode_expr(rhs)))
            for op, lhs, rhs in metadata["guards"]
        )
        plan = plan_from_data(metadata["plan"])
        names = (metadata["forward"], metadata["backward"])
    except (CorruptArtifactError, KeyError, TypeError, ValueError) as error:
        logger.warning("a corrupt program in the cache is compiled again: %s", error)
        return None
    if not _fit(guards, env):
        return None
    forward = load_graph(names[0], store)
    backward = None if names[1] is None else load_graph(names[1], store)
    if forward is None or (backward is None and names[1] is not None):
        return None
    for guard in guards:
        assert env is not None
        env.require(guard.relation)
    return StoredProgram(plan, forward, backward, guards)


def _fit(guards: Sequence[ShapeGuard], env: ShapeEnv | None) -> bool:
    if not guards:
        return True
    if env is None or any(guard.relation.symbols - env.symbols.keys() for guard in guards):
        return False
    hints = {atom: info.hint for atom, info in env.symbols.items() if info.hint is not None}
    return all(guard.relation.symbols <= hints.keys() and guard.relation.holds(hints) for guard in guards)
