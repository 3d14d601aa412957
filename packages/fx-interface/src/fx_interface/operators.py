"""The protocol through which shape rules and decompositions are passed between packages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from torch._ops import OpOverload

from fx_interface.symbols import ShapeEnv
from fx_interface.tensor_spec import ValueSpec

SpecRule: TypeAlias = Callable[..., ValueSpec]
"""Called as the operator would be, with a ``TensorSpec`` for each tensor and an int or ``Expr`` for each size;
returns the result's spec (a tuple for several results). Keyword ``env`` is the ``ShapeEnv``."""


class OperatorLibrary(Protocol):
    """What a tracer asks about operators."""

    def infer(
        self, op: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any], env: ShapeEnv
    ) -> ValueSpec:
        """The spec of ``op``'s result. Tensors are given as ``TensorSpec``, sizes as int or ``Expr``.

        Raises what the operator itself would raise for bad arguments, and ``UnsupportedProgramError`` where no
        rule exists and none can be found by running the operator's own kernel.
        """
        ...
