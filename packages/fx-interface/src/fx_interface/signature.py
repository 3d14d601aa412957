"""Signatures: what each input and output of a graph is."""

from __future__ import annotations

from enum import Enum

from torch.fx import GraphModule

from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.source import Source
from fx_interface.tensor_spec import ValueSpec

SIGNATURE_KEY = "signature"
"""The key of ``GraphModule.meta`` under which a graph's ``Signature`` lies."""

SHAPE_ENV_KEY = "shape_env"
"""The key of ``GraphModule.meta`` under which the ``ShapeEnv`` of the compilation lies (absent: all sizes static)."""

DIALECT_KEY = "dialect"
"""The key of ``GraphModule.meta`` that names the dialect: ``"torch"``, ``"aten"`` or ``"prims"``."""


class InputKind(Enum):
    """Why a value is an input of the graph."""

    USER = "user"
    PARAMETER = "parameter"
    BUFFER = "buffer"
    SYMBOL = "symbol"
    RNG_STATE = "rng_state"
    TANGENT = "tangent"
    SAVED = "saved"


class OutputKind(Enum):
    """What a result of the graph is for."""

    USER = "user"
    MUTATED_INPUT = "mutated_input"
    ALIAS_OF_INPUT = "alias_of_input"
    SAVED = "saved"
    GRADIENT = "gradient"


@dataclass(frozen=True, slots=True)
class InputDecl:
    """One placeholder: its node name, kind, spec, and the source it is read from (None inside the stack).

    A SYMBOL input is a Python int; its spec is a ``SymSpec`` of exactly one symbol.
    """

    name: str
    kind: InputKind
    spec: ValueSpec
    source: Source | None = None


@dataclass(frozen=True, slots=True)
class OutputDecl:
    """One result. ``input_index`` names the input that is mutated, viewed, or differentiated; else None."""

    kind: OutputKind
    input_index: int | None = None


@dataclass(frozen=True, slots=True)
class Signature:
    """Inputs in placeholder order and outputs in the order of the output node's tuple."""

    inputs: tuple[InputDecl, ...]
    outputs: tuple[OutputDecl, ...]


def signature_of(graph_module: GraphModule) -> Signature | None:
    """The graph's signature, or None for a graph that did not come from this stack."""
    found = graph_module.meta.get(SIGNATURE_KEY)
    assert found is None or isinstance(found, Signature)
    return found
