"""Every declared function can be called with the arguments that its operator's schema has."""

from __future__ import annotations

import inspect
import re
from typing import Any

import pytest
import torch

from primtorch_decomps import DECOMPOSITIONS, RULES, DuplicateDeclarationError, decomposes
from primtorch_decomps.registry import OperatorTable, overload

ATEN = torch.ops.aten
DECLARED = [(op, "decomposition", entry.function) for op, entry in DECOMPOSITIONS.items()]
DECLARED += [(op, "rule", rule) for op, rule in RULES.items()]


def _without_address(value: Any) -> str:
    """The same text in each process."""
    return re.sub(r" at 0x[0-9a-f]+", "", str(value))


@pytest.mark.parametrize(("op", "kind", "function"), DECLARED, ids=_without_address)
def test_function_takes_the_schema_s_arguments(op: Any, kind: str, function: Any) -> None:
    formula = getattr(function, "formula", None)
    signature = inspect.signature(formula or function)
    positional = [a for a in op._schema.arguments if not a.kwarg_only]
    keywords = {a.name: None for a in op._schema.arguments if a.kwarg_only}
    if kind == "rule" and formula is None:
        keywords["env"] = None
    signature.bind(*positional, **keywords)
    required = [a for a in positional if not a.has_default_value()]
    needed = {a.name: None for a in op._schema.arguments if a.kwarg_only and not a.has_default_value()}
    signature.bind(*required, **needed, **({"env": None} if "env" in keywords else {}))


def test_tensor_parameters_stand_where_the_schema_has_tensors() -> None:
    """A formula's parameter that is annotated as a tensor is one in the schema, at the same place."""
    for op, _, function in DECLARED:
        signature = inspect.signature(getattr(function, "formula", None) or function)
        positional = [a for a in op._schema.arguments if not a.kwarg_only]
        for argument, parameter in zip(positional, signature.parameters.values(), strict=False):
            if parameter.annotation in ("PrimTensor", "TensorSpec", "Optional"):
                assert "Tensor" in str(argument.type) or argument.name in ("self", "other"), (op, parameter)


def test_a_second_decomposition_names_both_places() -> None:
    with pytest.raises(
        DuplicateDeclarationError, match=r"DEC201(.|\n)*activations\.py(.|\n)*test_registry\.py"
    ):

        @decomposes("aten.silu.default")
        def silu(x: Any) -> Any:
            return x


def test_tables_are_values() -> None:
    silu = ATEN.silu.default

    def other(x: Any) -> Any:
        return x

    changed = DECOMPOSITIONS | {silu: other}
    assert changed[silu] is other
    assert DECOMPOSITIONS[silu] is not other
    assert silu not in DECOMPOSITIONS.without(silu)
    assert len(OperatorTable({})) == 0
    assert overload("aten.no_such_operator.default") is None
