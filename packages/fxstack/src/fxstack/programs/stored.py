"""Stored programs: how a compiled program is written and read back; ``keys`` says how it is named."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from aot_autograd.plan import JointPlan
from aot_autograd.plan_json import plan_from_data, plan_to_data
from fx_interface import CorruptArtifactError, UnsupportedProgramError
from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.serialization.encoding import decode_expr, encode_expr
from fx_interface.symbols import Relation, ShapeEnv, ShapeGuard
from inductor_codegen.cache import ArtifactStore
from inductor_codegen.native.stored import load_graph

logger = logging.getLogger("fxstack")
_WHOLE = "backward"


@dataclass(frozen=True, slots=True)
class StoredProgram:
    """A compiled program. ``guards`` are the relations between sizes that its compilation recorded; ``whole`` is the
    text of the backward that takes all gradients, where ``backward`` does not (``usual_backward``)."""

    plan: JointPlan
    forward: Any
    backward: Any | None
    guards: tuple[ShapeGuard, ...] = ()
    whole: bytes | None = None


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
        store.put(key, metadata, {} if program.whole is None else {_WHOLE: program.whole})
    except UnsupportedProgramError as error:
        logger.info("a program is not kept in the cache: %s", error)
    except OSError as error:
        logger.warning(
            "a program could not be kept in the cache %s: %s; $FXSTACK_CACHE_DIR names another folder",
            store.folder,
            error,
        )


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
        whole = found.files[_WHOLE].read_bytes() if _WHOLE in found.files else None
    except (CorruptArtifactError, KeyError, OSError, TypeError, ValueError) as error:
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
    return StoredProgram(plan, forward, backward, guards, whole)


def _fit(guards: Sequence[ShapeGuard], env: ShapeEnv | None) -> bool:
    if not guards:
        return True
    if env is None or any(guard.relation.symbols - env.symbols.keys() for guard in guards):
        return False
    hints = {atom: info.hint for atom, info in env.symbols.items() if info.hint is not None}
    return all(guard.relation.symbols <= hints.keys() and guard.relation.holds(hints) for guard in guards)
