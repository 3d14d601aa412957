"""Plans as JSON data, so that a program whose compiled graphs are stored runs again without tracing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final

import torch

from aot_autograd import plan as records
from aot_autograd.operators.functionalized import restore
from aot_autograd.plan import JointPlan
from fx_interface.serialization.encoding import corrupt, decode, decode_spec, encode, encode_spec
from fx_interface.tensor_spec import TensorSpec

FORMAT: Final = "aot-autograd plan 29"
"""The value under ``"format"`` in every stored plan."""

_RECORDS: Final[Mapping[str, type[Any]]] = {
    cls.__name__: cls
    for cls in (
        records.FromGraph,
        records.FromInput,
        records.SameAs,
        records.FromResult,
        records.Constant,
        records.Replay,
        records.ViewOf,
        records.AsInference,
        records.MutatedInput,
        records.FormOfInput,
        records.Apart,
        records.SavedInput,
        records.SavedOutput,
        records.Tangent,
        records.GraphPart,
        records.FromCall,
        records.TorchCall,
        records.GradientBehind,
        records.BackwardPlan,
        records.Repeat,
        records.JointPlan,
    )
}


def plan_to_data(plan: JointPlan) -> dict[str, Any]:
    """The plan as data for ``json``. UnsupportedProgramError FXI302 where something has no stored form."""
    return {"format": FORMAT, "plan": _encode(plan)}


def plan_from_data(data: Any) -> JointPlan:
    """The plan that ``plan_to_data`` wrote. CorruptArtifactError FXI301 for anything else."""
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        corrupt(f"this is no {FORMAT}")
    try:
        plan = _decode(data["plan"])
        for name in plan.functional_forms if isinstance(plan, JointPlan) else ():
            restore(name)
    except (AttributeError, KeyError, TypeError, ValueError, RuntimeError) as error:
        corrupt(f"the plan cannot be read: {error}")
    return plan if isinstance(plan, JointPlan) else corrupt("this is no plan")


def _encode(value: Any) -> Any:
    name = type(value).__name__
    if _RECORDS.get(name) is type(value):
        return {name: [_encode(getattr(value, field.name)) for field in fields(value)]}
    if isinstance(value, tuple):
        return {"tuple": [_encode(part) for part in value]}
    if isinstance(value, list):
        return [_encode(part) for part in value]
    if isinstance(value, TensorSpec):
        return {"spec": encode_spec(value)}
    if isinstance(value, torch.Tensor):
        layout = [list(value.shape), list(value.stride()), encode(value.dtype), str(value.device)]
        return {"tensor": [*layout, encode(value.reshape(-1).tolist())]}
    return encode(value)


def _decode(data: Any) -> Any:
    if isinstance(data, list):
        return [_decode(part) for part in data]
    if not isinstance(data, dict):
        return data
    if len(data) != 1:
        corrupt(f"{data!r} is no value")
    ((kind, content),) = data.items()
    match kind:
        case "tuple":
            return tuple(_decode(part) for part in content)
        case "spec":
            return decode_spec(content)
        case "tensor":
            return _tensor(*content)
    if kind in _RECORDS:
        return _RECORDS[kind](*(_decode(part) for part in content))
    return decode(data)


def _tensor(sizes: list[int], strides: list[int], dtype: Any, device: str, content: Any) -> torch.Tensor:
    made = torch.empty_strided(sizes, strides, dtype=decode(dtype), device=device)
    return made.copy_(torch.tensor(decode(content), dtype=made.dtype).reshape(sizes))
