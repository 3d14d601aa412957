"""Constants out of safetensors: tensors that lie where the file is mapped.

A constant is ``{"name", "tensor", "dtype", "sizes", "strides", "role"}``: ``tensor`` names what safetensors holds
(null: it is bound when the artifact is loaded): as many elements as lie between its first and its last one, seen by
``sizes`` and ``strides``. ``role``: what it is of the model, ``parameter``, ``buffer`` or null. A parameter that is
trained has ``"requires_grad": true``; a shared one has its other names as ``"aliases"``; one on a GPU has its
``"device"``, and is copied there.
"""

from __future__ import annotations

import json
import mmap
import struct
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch

from fxstack_artifact.errors import ArtifactError, unreadable

DTYPES: dict[str, torch.dtype] = {
    "BOOL": torch.bool,
    "U8": torch.uint8,
    "I8": torch.int8,
    "I16": torch.int16,
    "U16": torch.uint16,
    "I32": torch.int32,
    "U32": torch.uint32,
    "I64": torch.int64,
    "U64": torch.uint64,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "F32": torch.float32,
    "F64": torch.float64,
    "C64": torch.complex64,
    "F8_E4M3": torch.float8_e4m3fn,
    "F8_E5M2": torch.float8_e5m2,
}
"""The names that safetensors has for dtypes."""

PARAMETER, BUFFER = "parameter", "buffer"
"""Roles."""


class Stored(NamedTuple):
    """A tensor as it lies in the file: elements from ``start`` of the buffer."""

    dtype: torch.dtype
    start: int
    elements: int


def stored_tensors(buffer: mmap.mmap | bytearray, start: int, size: int) -> dict[str, Stored]:
    """What a safetensors content at this place of ``buffer`` holds. ArtifactError FXA108 if it is none."""
    try:
        (length,) = struct.unpack_from("<Q", buffer, start)
        if length > size - 8:
            raise ValueError("its header is longer than it")
        first = start + 8 + length
        header = json.loads(bytes(memoryview(buffer)[start + 8 : first]))
        found = {}
        for name, item in header.items():
            if name == "__metadata__":
                continue
            dtype, (begin, end) = DTYPES[item["dtype"]], item["data_offsets"]
            if not 0 <= begin <= end <= size - 8 - length or (end - begin) % dtype.itemsize:
                raise ValueError(f"{name} lies outside")
            found[str(name)] = Stored(dtype, first + begin, (end - begin) // dtype.itemsize)
        return found
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError, struct.error) as error:
        raise unreadable(f"its weights are no safetensors ({error!r})") from error


def constants(
    described: Sequence[Mapping[str, Any]],
    stored: Mapping[str, Stored],
    buffer: mmap.mmap | bytearray,
    bound: Mapping[str, torch.Tensor],
) -> list[torch.Tensor]:
    """The constants of a program, in order: those that are ``bound`` by name, and the others out of the file."""
    made = []
    for item in described:
        given = next((bound[n] for n in (item["name"], *item.get("aliases", ())) if n in bound), None)
        made.append(_constant(item, stored, buffer) if given is None else _bound(item, given))
    return [_in_role(item, tensor) for item, tensor in zip(described, made, strict=True)]


def _in_role(item: Mapping[str, Any], tensor: torch.Tensor) -> torch.Tensor:
    """A parameter is one that an optimizer takes: the caller's own, if it is one."""
    if item.get("role") != PARAMETER or type(tensor) is torch.nn.Parameter:
        return tensor
    return torch.nn.Parameter(tensor, requires_grad=item.get("requires_grad") is True)


def _bound(item: Mapping[str, Any], tensor: torch.Tensor) -> torch.Tensor:
    """A tensor of the caller's; a copy of it only where it lies otherwise in memory than the program takes it."""
    sizes, strides = [int(n) for n in item["sizes"]], [int(n) for n in item["strides"]]
    if (
        str(tensor.dtype) != f"torch.{item['dtype']}"
        or list(tensor.shape) != sizes
        or tensor.device != device_of(item)
    ):
        raise ArtifactError(
            "FXA201",
            f"the weight {item['name']} is {tensor.dtype} of {list(tensor.shape)} on {tensor.device}, "
            f"the program takes torch.{item['dtype']} of {sizes} on {device_of(item)}",
        )
    if type(tensor) is torch.nn.Parameter and list(tensor.stride()) == strides:
        return tensor
    plain = tensor.detach().resolve_conj().resolve_neg()
    if list(plain.stride()) == strides and type(plain) is torch.Tensor:
        return plain
    once = plain
    for d, (size, stride) in enumerate(zip(sizes, strides, strict=True)):
        if size > 1 and stride == 0:  # the program sees one memory several times
            once = once.narrow(d, 0, 1)
    if once is not plain and not torch.equal(once.expand(sizes), plain):
        raise ArtifactError(
            "FXA201",
            f"the weight {item['name']} has strides {strides} in the program, and repeats nothing here",
        )
    steps = [stride or 1 for stride in strides]
    made = torch.empty_strided(once.shape, steps, dtype=plain.dtype, device=plain.device)
    return made.copy_(once).expand(sizes)


def _constant(
    item: Mapping[str, Any], stored: Mapping[str, Stored], buffer: mmap.mmap | bytearray
) -> torch.Tensor:
    if item["tensor"] is None:
        raise ArtifactError(
            "FXA201",
            f"the weight {item['name']} is not in the artifact",
            "pass it: load(path, weights=model.state_dict()), or the path of a safetensors file",
        )
    found = stored.get(str(item["tensor"]))
    if found is None:
        raise ArtifactError("FXA201", f"the weight {item['name']} is missing")
    flat = (
        torch.frombuffer(buffer, dtype=found.dtype, count=found.elements, offset=found.start)
        if found.elements
        else torch.empty(0, dtype=found.dtype)
    )
    if found.elements and found.start % found.dtype.itemsize:
        flat = torch.frombuffer(
            bytearray(memoryview(buffer)[found.start :][: found.elements * found.dtype.itemsize]),
            dtype=found.dtype,
        )
    return shaped(item, flat if device_of(item) == _CPU else flat.to(device_of(item)))


_CPU = torch.device("cpu")


def device_of(item: Mapping[str, Any]) -> torch.device:
    """Where the tensor that ``item`` describes lies."""
    return torch.device(item["device"]) if "device" in item else _CPU


def shaped(item: Mapping[str, Any], flat: torch.Tensor) -> torch.Tensor:
    """``flat`` with the sizes and strides of a constant. ArtifactError FXA201 where it is another one."""
    sizes, strides = [int(n) for n in item["sizes"]], [int(n) for n in item["strides"]]
    extent = 0 if 0 in sizes else 1 + sum((n - 1) * s for n, s in zip(sizes, strides, strict=True))
    if str(flat.dtype) != f"torch.{item['dtype']}" or flat.numel() != extent or min(strides, default=0) < 0:
        raise ArtifactError(
            "FXA201",
            f"the weight {item['name']} is {flat.dtype} of {flat.numel()} elements, "
            f"the program takes torch.{item['dtype']} of {extent}",
        )
    return flat.as_strided(sizes, strides)
