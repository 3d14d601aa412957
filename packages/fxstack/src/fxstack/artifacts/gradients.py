"""The backward of a training artifact: its contract, and how autograd's node feeds and reads it.

The form is that of ``fxstack_artifact.training.differentiable``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aot_autograd.plan import BackwardPlan, JointPlan, SavedInput, SavedSource
from fx_interface.symbols import Expr, Symbol
from fx_interface.tensor_spec import TensorSpec
from fxstack.artifacts.contract import Contract
from fxstack.artifacts.errors import ExportError
from fxstack.artifacts.results import unsupported
from inductor_codegen.runtime import GraphRecord

_VERSION, _INTEGER = 1, 1
_LEAF, _CONSTANT, _SYMBOL, _NOTHING = 0, 1, 2, 3
_TENSOR_RESULT, _NO_RESULT = 0, 3


def check_gradients(plan: JointPlan) -> None:
    """ExportError FXS511 where no result has a gradient, FXS508 for what a training artifact does not have."""
    backward = plan.backward
    if backward is None or not backward.gradient_of or not plan.differentiable:
        raise ExportError(
            "FXS511",
            "no result has a gradient of a parameter or argument that requires grad",
            action="leave out training=True, or call requires_grad_() on what is trained",
        )
    for has, what in (
        (any(m.differentiable for m in plan.mutated), "an argument is written to and autograd follows"),
        (backward.leaves or backward.released, "it computes gradients itself"),
        (backward.effects, "its backward has effects besides gradients"),
        (backward.behind, "a gradient is a sparse tensor"),
        (plan.opens_grad, "it turns gradients on by itself"),
        (plan.born, "sizes come from data"),
    ):
        if has:
            raise unsupported(what)


def described_backward(
    plan: JointPlan, contract: Contract, record: GraphRecord, objects: Mapping[str, str]
) -> dict[str, Any]:
    """The backward as the loader reads it."""
    backward = plan.backward
    assert backward is not None
    numbers = [_number(contract, plan.symbols[position][0]) for position in backward.symbols]
    specs = [*backward.saved_specs, *(tangent.spec for tangent in backward.tangents)]
    return {
        "graph": {
            "objects": dict(objects),
            "contract": _words(contract, record, numbers, specs),
            "constants": [],
            "operators": [call.to_data() for call in record.operators],
            "release_gil": record.release_gil,
            "scratch_limit": record.scratch_limit,
        },
        "leaves": len(contract.symbols) + len(specs),
        "saved": [_saved(contract, source) for source in backward.saved],
        "tangents": [
            {"result": tangent.graph_index, **_form(contract, tangent.spec)} for tangent in backward.tangents
        ],
        "gradients": [
            {"of": _input(contract, of), "from": place, "depends": list(depends)}
            for of, place, depends in _gradients(backward, numbers, len(contract.symbols))
        ],
        "unreached": [_input(contract, number) for number in backward.cut],
        "nan_from_zeros": [list(tangents) for tangents in backward.nan_from_zeros],
        "linked": [[later, [n for n in earlier if n >= 0]] for later, earlier in backward.between],
        "returned": plan.returned,
    }


def _gradients(
    backward: BackwardPlan, numbers: list[int], symbols: int
) -> list[tuple[int, int, tuple[int, ...]]]:
    """Input, place and tangents of each gradient. The loader passes all symbols, and then what is saved."""
    shift = symbols - len(numbers)
    return [
        (of, place if place >= 0 else place - shift, depends)
        for of, place, depends in zip(
            backward.gradient_of, backward.gradient_from, backward.depends, strict=True
        )
    ]


def _words(contract: Contract, record: GraphRecord, numbers: list[int], specs: list[TensorSpec]) -> list[int]:
    """The contract of the backward graph: its leaves are all symbols, what is saved, and arriving gradients."""
    count = len(contract.symbols)
    words = [_VERSION, count]
    for number, (_, _, low, high) in enumerate(contract.symbols.values()):
        words += [number, -1, low, high]
    words += [count + len(specs), *([_INTEGER] * count)]
    for spec in specs:
        words += contract.tensor(spec)
    words += [0, len(record.input_kinds)]
    sources = [*((_SYMBOL, number) for number in numbers), *((_LEAF, count + n) for n in range(len(specs)))]
    for kind, source in zip(record.input_kinds, sources, strict=True):
        words += [_NOTHING, 0] if kind == "u" else source
    kinds = {"t": _TENSOR_RESULT, "n": _NO_RESULT}
    if not set(record.output_kinds) <= kinds.keys():
        raise unsupported("its backward returns numbers")
    return [*words, len(record.output_kinds), *(kinds[kind] for kind in record.output_kinds), 0, 0]


def _number(contract: Contract, name: str) -> int:
    """The number of a symbol in the contract. ExportError FXS505 where no size of an argument gives it."""
    symbol = Symbol(name)
    contract.expression(Expr((((symbol,), 1),)))
    return list(contract.symbols).index(symbol)


def _input(contract: Contract, number: int) -> list[Any]:
    of, index = contract.inputs[number]
    if of not in (_LEAF, _CONSTANT):
        raise unsupported(f"input {number} is no tensor and has a gradient")
    return ["leaf" if of == _LEAF else "weight", index]


def _saved(contract: Contract, source: SavedSource) -> list[Any]:
    return _input(contract, source.index) if isinstance(source, SavedInput) else ["graph", source.index]


def _form(contract: Contract, spec: TensorSpec) -> dict[str, Any]:
    return {
        "dtype": str(spec.dtype).removeprefix("torch."),
        "sizes": [contract.expression(size) for size in spec.sizes],
        "strides": [contract.expression(stride) for stride in spec.strides],
        **({} if spec.device.type == "cpu" else {"device": str(spec.device)}),
    }
