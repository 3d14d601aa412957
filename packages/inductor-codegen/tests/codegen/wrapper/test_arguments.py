"""C arguments derived from schemas: against the prototypes in the installed torch's own headers, and as text."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch._ops import OpOverload

from fx_interface.symbols import symbol
from inductor_codegen.codegen.wrapper.arguments import Unspeakable, c_arguments, double, quoted
from inductor_codegen.ir.program import BufferRef, CallExtern, FloatRef

HEADERS = Path(torch.__file__).parent / "include/torch/csrc/inductor/aoti_torch/generated"
PROTOTYPE = re.compile(r"AOTITorchError (aoti_torch_(?:cpu|aten)_(\w+))\(([^)]*)\);")


class Names:
    """Values named by themselves."""

    def handle(self, name: str) -> str:
        return name

    def number(self, name: str) -> str:
        return f"f_{name}"


def prototypes() -> dict[str, list[str]]:
    """C parameter types by function, as the headers declare them."""
    found: dict[str, list[str]] = {}
    for header in ("c_shim_cpu.h", "c_shim_aten.h"):
        for name, _, parameters in PROTOTYPE.findall((HEADERS / header).read_text()):
            found[name] = [_c_type(parameter) for parameter in parameters.split(", ")]
    return found


def _c_type(parameter: str) -> str:
    written = parameter.rpartition(" ")[0]
    return written.replace("AtenTensorHandle", "H").replace("AtenGeneratorHandle", "H").replace(" ", "")


def overloads(name: str) -> list[OpOverload]:
    """The operators of ATen that ``name`` may stand for: an operator, or one and an overload."""
    found = []
    for cut in [len(name), *(m.start() for m in re.finditer("_", name))]:
        packet = getattr(torch.ops.aten, name[:cut], None)
        overload = "default" if cut == len(name) else name[cut + 1 :]
        if packet is not None and overload in packet.overloads():
            found.append(getattr(packet, overload))
    return found


def sample(kind: str) -> Any:
    """An argument of that schema type."""
    if kind.startswith("Optional["):
        return sample(kind[9:-1])
    if kind.startswith("List["):
        return (sample(kind[5:-1]),)
    return {
        "Tensor": BufferRef("x"), "int": 3, "SymInt": 3, "float": 0.5, "number": 0.5, "bool": True, "str": "s",
        "ScalarType": torch.float32, "Layout": torch.strided, "Device": torch.device("cpu"),
        "MemoryFormat": torch.contiguous_format,
    }[kind]  # fmt: skip


def derived(op: OpOverload, present: bool) -> list[str]:
    """Our C types for a call with every optional argument given, or none."""
    args = []
    for declared in op._schema.arguments:
        kind = str(declared.real_type)
        absent = kind.startswith("Optional[") and (not present or "Generator" in kind)
        args.append(None if absent else sample(kind))
    pairs = list(zip(args, op._schema.arguments, strict=True))
    positional = tuple(value for value, declared in pairs if not declared.kwarg_only)
    keywords = tuple((declared.name, value) for value, declared in pairs if declared.kwarg_only)
    made = c_arguments(CallExtern(op, positional, keywords, ()), Names(), True)
    return [kind.replace(" ", "") for kind in made.types]


def test_types_agree_with_torchs_headers_for_every_function() -> None:
    checked = 0
    wrong = []
    for function, types in prototypes().items():
        name = re.sub("^aoti_torch_(cpu|aten)_", "", function)
        if name.endswith("_out") or "_v2" in name or "_functional" in name:
            continue
        for op in overloads(name):
            results = ["H*"] * len(op._schema.returns)
            if any(str(value.type) != "Tensor" for value in op._schema.returns) or op._schema.is_mutable:
                continue
            for present in (False, True):
                ours = derived(op, present) + results
                if ours != types:
                    wrong.append((function, str(op), ours, types))
            checked += 1
    assert not wrong
    assert checked > 70


def text_of(op: OpOverload, *args: Any, exact: bool = False, **kwargs: Any) -> str:
    made = c_arguments(CallExtern(op, args, tuple(kwargs.items()), ()), Names(), exact)
    return " ".join((*made.setup, ", ".join(made.values)))


def test_text_of_arguments() -> None:
    x = BufferRef("x")
    s0 = symbol("s0")
    assert text_of(torch.ops.aten.topk.default, x, s0 * 2, -1, True) == "x, (2 * n_s0), -1, 1, 1"
    assert text_of(torch.ops.aten.cat.default, (x, BufferRef("y")), 1) == "const H a0[] = {x, y}; a0, 2, 1"
    assert text_of(torch.ops.aten.cumsum.default, x, 0) == "x, 0, nullptr"
    assert (
        text_of(torch.ops.aten.cumsum.default, x, 0, dtype=torch.float64)
        == "int32_t a0 = 7; x, 0, &a0"
    )  # fmt: skip
    assert text_of(torch.ops.aten.normal_functional.default, x, FloatRef("m"), 2) == (
        "x, f_m, (double)2, nullptr"
    )
    assert text_of(torch.ops.aten.reshape.default, x, (s0, -1)) == "const int64_t a0[] = {n_s0, -1}; x, a0, 2"


def test_what_has_no_c_form_is_said_to_have_none() -> None:
    x = BufferRef("x")
    with pytest.raises(Unspeakable):
        text_of(torch.ops.aten.add.Scalar, x, 2)
    assert text_of(torch.ops.aten.add.Scalar, x, 2, exact=True).startswith("x, 0x1.0")
    with pytest.raises(Unspeakable):
        text_of(torch.ops.aten.add.Scalar, x, (1 << 53) + 1, exact=True)
    with pytest.raises(Unspeakable):
        text_of(torch.ops.aten.rand.default, (2,), device=torch.device("meta"))
    with pytest.raises(Unspeakable):
        text_of(torch.ops.aten.bernoulli.p, x, 0.5, generator=torch.Generator())


@pytest.mark.parametrize("value", [0.1, -0.0, 1e308, 5e-324, float("inf"), -float("inf")])
def test_doubles_are_exact(value: float) -> None:
    text = double(value)
    if value in (float("inf"), -float("inf")):
        assert text.endswith("__builtin_inf()")
    else:
        assert str(float.fromhex(text)) == str(value)


def test_strings_are_escaped() -> None:
    assert quoted("reflect") == '"reflect"'
    assert quoted('a"\n') == '"\\141\\042\\012"'
