"""Measuring where this torch keeps a tensor's metadata, and checking that what is read there is true.

A few tensors with tell-tale numbers are scanned for them; then a range of tensors is read natively and compared with
Python's attributes. Any disagreement turns native reading off: the records then answer, slower and still right.
"""

from __future__ import annotations

import ctypes
import logging
import struct
from collections.abc import Callable
from typing import Any

import torch

from fx_guards import _native
from fx_guards.kinds.state import FACTS
from fx_guards.kinds.tensor import dispatch_keys
from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.torch_internals.tensor_extents import size_of, stride_of

_log = logging.getLogger("fx_guards")
_SCANNED = 256  # bytes of a tensor's C++ object that are searched
_MASK = 2**64 - 1
_MODULE_GETATTR = torch.nn.Module.__getattr__  # torch's own, whatever a program puts there later


@dataclass(frozen=True, slots=True)
class Layout:
    """Byte offsets: ``impl`` in the Python object, the others in the C++ object that it points to, but ``grad_flag`` in
    the autograd metadata that this points to."""

    impl: int
    keys: int
    sizes: int
    dtype: int
    device: int
    autograd: int
    storage: int
    grad_flag: int


@dataclass(frozen=True, slots=True)
class Calibration:
    """What was found: the layout (None: not usable), the state readers, the numbers that stand for torch's values."""

    layout: Layout | None
    plain_keys: int
    dtypes: dict[torch.dtype, int]
    devices: dict[str, int]
    readers: dict[str, int]
    masks: dict[str, int]

    def is_plain(self, cls: type, keys: int) -> bool:
        """Whether such tensors keep their metadata where ``layout`` says."""
        return cls in _PLAIN_TYPES and not keys & ~self.plain_keys

    def dtype_code(self, dtype: torch.dtype) -> int | None:
        """torch's number of a dtype."""
        return self.dtypes.get(dtype)

    def device_code(self, device: torch.device) -> tuple[int, int] | None:
        """torch's numbers of a device: type and index."""
        kind = self.devices.get(device.type)
        return None if kind is None else (kind, -1 if device.index is None else device.index)

    def encode(self, name: str, value: Any) -> int | None:
        """The 64-bit number that a state reader gives for ``value``; None where there is none."""
        return _encode(value, self.dtypes, self.masks.get(name, 0))


_PLAIN_TYPES = (torch.Tensor, torch.nn.Parameter)
_DTYPES = tuple(
    getattr(torch, name)
    for name in (
        *("float32", "float64", "float16", "bfloat16", "complex64", "complex128", "bool"),
        *("uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64"),
        *("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"),
    )
    if hasattr(torch, name)
)


_NUMBERS = (torch.float32, torch.float64, torch.int32, torch.int64)
"""What ``fx_guards.contents`` reads natively."""


def calibrate() -> Calibration:
    """Measure, check, and set up the native module. Logs why where something is not usable."""
    _native.set_module_getattr(_MODULE_GETATTR)
    _native.set_extent_readers(size_of, stride_of)
    devices = _device_codes()
    plain_keys = _plain_keys()
    layout: Layout | None = None
    dtypes: dict[torch.dtype, int] = {}
    try:
        layout = _find_layout()
        odd = ~plain_keys & _MASK
        offsets = (layout.impl, layout.keys, layout.sizes, layout.dtype, layout.device)
        _native.set_tensor_layout(
            (*offsets, layout.autograd, layout.storage, layout.grad_flag, odd, _PLAIN_TYPES)
        )
        dtypes = {d: _native.tensor_metadata(torch.empty(0, dtype=d))[1] for d in _DTYPES}
        _verify(dtypes, devices)
        _native.set_number_layout((_keys_of_numbers(), *(dtypes[dtype] for dtype in _NUMBERS)))
    except (LookupError, OSError, ValueError, struct.error) as error:
        _log.warning("[GRD002] tensor guards are checked in Python: %s", error)
        _native.set_tensor_layout(None)
        _native.set_number_layout(None)
        layout = None
    readers, masks = _state_readers(dtypes)
    return Calibration(layout, plain_keys, dtypes, devices, readers, masks)


# --- finding ---


def _memory(address: int, size: int) -> bytes:
    return ctypes.string_at(address, size)


def _usable(address: int, least: int) -> int:
    """How many bytes of an allocation may be read: as many as malloc says, at most those that are searched."""
    try:
        usable = ctypes.CDLL(None).malloc_usable_size
        usable.restype, usable.argtypes = ctypes.c_size_t, [ctypes.c_void_p]
        return min(_SCANNED, int(usable(address))) or least
    except (AttributeError, OSError):
        return least


def _impl_bytes(tensor: torch.Tensor) -> bytes:
    return _memory(tensor._cdata, _usable(tensor._cdata, 192))


_Test = tuple[bytes, Callable[[bytes, int], bool]]


def _place(name: str, tests: list[_Test], step: int = 8) -> int:
    """The one offset at which each test's memory passes its test; LookupError if there is none or several."""
    limit = min(len(memory) for memory, _ in tests)
    found = [at for at in range(0, limit, step) if all(test(memory, at) for memory, test in tests)]
    if len(found) != 1:
        raise LookupError(f"{len(found)} candidates for the place of a tensor's {name}")
    return found[0]


def _reads(layout: str, *values: int) -> Callable[[bytes, int], bool]:
    """A test: the memory at an offset, unpacked by a struct layout, is ``values``."""
    size = struct.calcsize(layout)
    return lambda memory, at: at + size <= len(memory) and struct.unpack_from(layout, memory, at) == values


def _find_layout() -> Layout:
    tensors = [
        torch.empty_strided((3, 5, 7), (1009, 101, 11)),
        torch.empty_strided((2, 9), (313, 17), dtype=torch.complex64).conj(),
        torch.empty_strided((4,), (6,), device="meta"),
    ]
    bodies = [_memory(id(t), torch.Tensor.__basicsize__) for t in tensors]
    memories = [_impl_bytes(t) for t in tensors]
    keys = [_reads("<Q", dispatch_keys(t)) for t in tensors]
    storages = [_reads("<Q", t.untyped_storage()._cdata) for t in tensors]
    impls = [_reads("<Q", t._cdata) for t in tensors]
    return Layout(
        _place("implementation", list(zip(bodies, impls, strict=True))),
        _place("dispatch keys", list(zip(memories, keys, strict=True))),
        _place("sizes", [(m, _extents(t)) for m, t in zip(memories, tensors, strict=True)]),
        _find_dtype(),
        _find_device(),
        _find_autograd(),
        _place("storage", list(zip(memories, storages, strict=True))),
        _find_grad_flag(),
    )


def _extents(tensor: torch.Tensor) -> Callable[[bytes, int], bool]:
    """A test: rank, sizes and, five words after them, strides."""
    rank = tensor.dim()
    sizes = _reads(f"<{rank + 1}q", rank, *tensor.shape)
    strides = _reads(f"<{rank}q", *tensor.stride())
    return lambda memory, at: sizes(memory, at) and strides(memory, at + 48)


def _find_dtype() -> int:
    """The 16-bit place whose number tells float32 (6), int64 (4), bool (11) and bfloat16 (15) apart."""
    samples = ((torch.float32, 6), (torch.int64, 4), (torch.bool, 11), (torch.bfloat16, 15))
    tensors = [torch.empty(2, dtype=dtype) for dtype, _ in samples]
    tests = [_reads("<H", code) for _, code in samples]
    return _place("dtype", list(zip(map(_impl_bytes, tensors), tests, strict=True)), step=2)


def _find_device() -> int:
    """The bytes that say (cpu, no index) in one tensor and (meta, no index) in another."""
    codes = _device_codes()
    tensors = [torch.empty(2, device=name) for name in ("cpu", "meta")]
    tests = [_reads("<bbB", codes[name], -1, 1) for name in ("cpu", "meta")]
    return _place("device", list(zip(map(_impl_bytes, tensors), tests, strict=True)), step=1)


def _find_autograd() -> int:
    """The pointer that is null until the tensor is made to require grad."""
    tensor = torch.empty(2)
    before = _impl_bytes(tensor)
    after = _impl_bytes(tensor.requires_grad_())
    is_null = _reads("<Q", 0)
    return _place("autograd metadata", [(before, is_null), (after, lambda m, at: not is_null(m, at))])


def _find_grad_flag() -> int:
    """The byte of the autograd metadata that is 1 while a leaf requires grad, and 0 otherwise; -1: there is no one."""
    place = _find_autograd()
    tests: list[_Test] = []
    for _ in range(3):
        tensor = torch.empty(2).requires_grad_()
        for wanted in (True, False, True):
            tensor.requires_grad_(wanted)
            address: int = struct.unpack_from("<Q", _impl_bytes(tensor), place)[0]
            tests.append((_memory(address, _usable(address, 64)), _reads("<B", int(wanted))))
    try:
        return _place("grad flag", tests, step=1)
    except LookupError:
        return -1


def _device_codes() -> dict[str, int]:
    """torch's number of each device type that its C interface names."""
    library = ctypes.CDLL(_library("libtorch_cpu.so"))
    codes = {}
    for name in ("cpu", "cuda", "meta", "xpu", "mps"):
        function = getattr(library, f"aoti_torch_device_type_{name}", None)
        if function is not None:
            codes[name] = int(function())
    return codes


def _library(name: str) -> str:
    return f"{torch.__path__[0]}/lib/{name}"


def _plain_keys() -> int:
    """Every dispatch key of ordinary dense tensors: any backend, conjugated, negated, inference, requiring grad."""
    complex_ = torch.empty(1, dtype=torch.complex64)
    samples = [torch.empty(1), torch.empty(1, requires_grad=True), torch.empty(1, device="meta")]
    samples += [complex_.conj(), complex_.conj().imag]
    with torch.inference_mode():
        samples.append(torch.empty(1))
    keys = 0
    for tensor in samples:
        keys |= dispatch_keys(tensor)
    for name in ("CPU", "CUDA", "XPU", "MPS"):
        for key_name in (name, f"Autocast{name}"):
            key = getattr(torch._C.DispatchKey, key_name, None)
            if key is None:
                continue
            keys |= int(torch._C.DispatchKeySet(key).raw_repr())
    return keys


def _keys_of_numbers() -> int:
    """Every dispatch key of tensors on a CPU whose memory holds their numbers as they are: not negated, say."""
    keys = dispatch_keys(torch.empty(1)) | dispatch_keys(torch.empty(1, requires_grad=True))
    with torch.inference_mode():
        keys |= dispatch_keys(torch.empty(1))
    return keys


# --- checking ---


def _samples() -> list[torch.Tensor]:
    base = torch.arange(24.0).reshape(2, 3, 4)
    leaf = torch.ones(3, requires_grad=True)
    made = [
        torch.empty(()),
        base,
        base.transpose(0, 2),
        base[:, 1:],
        base[..., None, None, None],
        leaf,
        leaf * 2,
    ]
    made += [
        torch.empty(0, 3),
        torch.nn.Parameter(base.clone()),
        torch.empty(2, 2, device="meta"),
        leaf.detach(),
    ]
    made += [torch.empty(2).requires_grad_().requires_grad_(False)]
    made += [torch.empty((1,) * 9), torch.zeros(2, dtype=torch.complex64).conj(), base.expand(5, 2, 3, 4)]
    made += [torch.empty(2, dtype=dtype) for dtype in _DTYPES]
    with torch.inference_mode():
        made.append(torch.empty(3))
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        made.append(torch.empty(2, device="cuda"))
    return made


def _verify(dtypes: dict[torch.dtype, int], devices: dict[str, int]) -> None:
    """ValueError where a native reading differs from the attribute, or two dtypes share a number."""
    if len(set(dtypes.values())) != len(dtypes):
        raise ValueError("two dtypes have one number")
    for tensor in _samples():
        device = tensor.device
        expected = (
            dispatch_keys(tensor),
            dtypes[tensor.dtype],
            devices[device.type],
            -1 if device.index is None else device.index,
            tensor.requires_grad,
            tensor.is_leaf,
            tuple(tensor.shape),
            tensor.stride(),
            tensor.untyped_storage()._cdata,
        )
        found = _native.tensor_metadata(tensor)
        if found != expected:
            raise ValueError(f"native reading {found} differs from {expected}")


# --- state ---


def _state_readers(dtypes: dict[torch.dtype, int]) -> tuple[dict[str, int], dict[str, int]]:
    """The readers that agree with Python now; raw key sets differ from Python's by a constant, kept as a mask."""
    found = _native.bind_state()
    readers: dict[str, int] = {}
    masks: dict[str, int] = {}
    if "torch_function_depth" in found:
        found["torch_function_modes"] = found["torch_function_depth"]
    for name, read in FACTS.items():
        if name not in found:
            continue
        if name.startswith("dispatch_"):
            masks[name] = _native.read_state(found[name]) ^ int(read())
        value = read()
        # a mode may be active while we calibrate: natively only the depth of the stack is read
        expected = (
            len(value) if name == "torch_function_modes" else _encode(value, dtypes, masks.get(name, 0))
        )
        if expected == _native.read_state(found[name]):
            readers[name] = found[name]
    return readers, masks


def _encode(value: Any, dtypes: dict[torch.dtype, int], mask: int) -> int | None:
    if isinstance(value, int):
        return (int(value) ^ mask) & _MASK
    if value is None:
        return _MASK
    if value == ():
        return 0
    return dtypes.get(value) if isinstance(value, torch.dtype) else None
