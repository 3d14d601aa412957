"""What a call did, as far as a program can tell, in a form that two runs can be compared by.

``observe`` runs a function and writes down its result, exception, output, warnings, gradients, what became of its
arguments, the random state and torch's modes. ``differences`` lists where two such outcomes are not the same:

    expected = observe(program, *arguments())
    actual = observe(compiled, *arguments())
    assert not differences(expected, actual)

Tensors are compared by type, dtype, device, shape, strides, offset, version (``own version``, where a
call has made the memory), history and to the bit; which tensors
share memory and which objects are one object is part of the outcome. A backend whose arithmetic may round otherwise
passes another comparison of values (``rounding``).
"""

from __future__ import annotations

import contextlib
import io
import math
import random
import traceback
import types
import warnings
from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import torch

_BY_IDENTITY: Any = object.__eq__
_BY_ADDRESS: Any = object.__repr__
_HEAP_TYPE = 1 << 9
CompareValues = Callable[[torch.Tensor, torch.Tensor], str | None]


@dataclass(frozen=True, slots=True)
class TensorForm:
    """A tensor at one moment; ``storage`` numbers the memories of an outcome in the order in which they are met."""

    facts: Mapping[str, object]
    storage: int | None
    content: torch.Tensor
    grad: Form | None


@dataclass(frozen=True, slots=True)
class ObjectForm:
    """An object: its class, the number of its identity, and what it consists of by name."""

    kind: str
    identity: int | None
    parts: Mapping[str, Form]


@dataclass(frozen=True, slots=True)
class LeafForm:
    """A value that is compared as a whole."""

    text: str


Form = TensorForm | ObjectForm | LeafForm


@dataclass(frozen=True, slots=True)
class Outcome:
    """All that ``observe`` saw, by the name of what it looked at."""

    forms: Mapping[str, Form]


def observe(
    function: Callable[..., Any],
    *args: Any,
    backward: bool = True,
    also: Mapping[str, Any] | None = None,
    lines_of: str | None = None,
) -> Outcome:
    """Run ``function(*args)`` and describe what it did.

    ``backward``: differentiate the sum of the results that have a history. ``also``: further objects that the
    call may change (a module, a log), described afterwards by these names. ``lines_of``: a file whose lines in the
    traceback of an exception are part of the outcome.
    """
    given = _memories((args, also))
    seed_everywhere(0)
    random.seed(0)
    out = io.StringIO()
    result, error = None, None
    with contextlib.redirect_stdout(out), warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            result = function(*args)
        except Exception as raised:
            error = raised
    drawn = bytes(torch.get_rng_state().tolist()), random.getstate()
    modes = _modes()
    described = _Describer(given)
    seen: dict[str, object] = {"result": result, "arguments": args, **(also or {})}
    before = {name: described.form(value) for name, value in seen.items()}
    forms: dict[str, Form] = {**before, "exception": _exception(error, lines_of)}
    forms["output"] = LeafForm(out.getvalue())
    texts = [(w.category.__name__, str(w.message)) for w in heard]
    forms["warnings"] = LeafForm(repr(list(dict.fromkeys(texts))))
    forms["all warnings"] = LeafForm(repr(texts))
    forms["random state"] = LeafForm(str(hash(drawn)))
    forms["modes"] = LeafForm(repr(modes))
    if error is not None:
        traceback.clear_frames(error.__traceback__)
    if backward:
        forms["backward"] = _exception(_differentiate(result), None)
        after = _Describer(given)
        forms.update({f"{name} after backward": after.form(value) for name, value in seen.items()})
    return Outcome(forms)


def seed_everywhere(seed: int) -> None:
    """Seed torch's generators, as ``torch.manual_seed``, which notes a stack of calls for devices not yet in use."""
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(seed)


def differences(
    expected: Outcome, actual: Outcome, values: CompareValues | None = None, ignore: Iterable[str] = ()
) -> list[str]:
    """One line for each place where two outcomes differ; empty if nobody can tell them apart.

    ``values`` compares two tensors of equal dtype and shape and says in words how they differ (``same_bits`` if
    None). ``ignore``: names of an outcome's parts, or of tensors' facts, that do not count; "grad version" stands for
    the versions of gradients, which count how often they were added to, and "refused backward" for a backward that
    raises in ``expected`` and what is seen after it.
    """
    left_out = frozenset(ignore)
    names = [name for name in {**expected.forms, **actual.forms} if name not in left_out]
    if "refused backward" in left_out and backward_is_refused(expected):
        names = [name for name in names if not name.endswith("backward")]
    compare = _Comparison(values or same_bits, left_out)
    found: list[str] = []
    for name in names:
        found += compare(name, expected.forms.get(name), actual.forms.get(name))
    return found


def same_bits(one: torch.Tensor, two: torch.Tensor) -> str | None:
    """None if two tensors hold the same bits, NaN payloads aside."""
    if _equal_bits(one, two):
        return None
    return f"{_shown(one)} is {_shown(two)}"


def rounding(relative: float, absolute: float) -> CompareValues:
    """A comparison of floating point numbers up to a tolerance; NaN, infinities and other types must be the same."""

    def compare(one: torch.Tensor, two: torch.Tensor) -> str | None:
        if not (one.is_floating_point() or one.is_complex()):
            return same_bits(one, two)
        close = torch.isclose(one, two, rtol=relative, atol=absolute, equal_nan=True)
        return None if bool(close.all()) else f"{_shown(one)} is {_shown(two)}"

    return compare


def _differentiate(result: Any) -> BaseException | None:
    with torch._C.DisableTorchFunctionSubclass():
        wanted = [t for t in _tensors(result) if t.requires_grad and t.grad_fn is not None]
        try:
            if wanted:
                sum((t.abs() if t.is_complex() else t).sum() for t in wanted).backward(retain_graph=True)  # type: ignore[union-attr]
        except Exception as raised:
            return raised
    return None


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _tensors(item)


def _modes() -> dict[str, object]:
    return {
        "grad": torch.is_grad_enabled(),
        "inference": torch.is_inference_mode_enabled(),
        "autocast": (torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")),
        "autocast cache": torch.is_autocast_cache_enabled(),
        "default dtype": torch.get_default_dtype(),
        "default device": str(torch.get_default_device()),
        "function modes": torch._C._len_torch_function_stack(),
        "dispatch modes": torch._C._len_torch_dispatch_stack(),
        "function subclasses": torch._C._is_torch_function_enabled(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "anomaly": torch.is_anomaly_enabled(),
    }


def backward_is_refused(outcome: Outcome) -> bool:
    """Whether the gradients of the results could not be had."""
    return outcome.forms.get("backward", _PASSED) != _PASSED


_PASSED: Final = LeafForm("none")
"""No exception."""


def _exception(error: BaseException | None, lines_of: str | None) -> Form:
    if error is None:
        return _PASSED
    if isinstance(error, RecursionError):  # where the limit is met depends on what stands below
        return LeafForm(type(error).__qualname__)
    lines = [
        f"{entry.name}:{entry.lineno}"
        for entry in traceback.extract_tb(error.__traceback__)
        if entry.filename == lines_of
    ]
    parts: dict[str, Form] = {
        "text": LeafForm(str(error)),
        "lines": LeafForm(repr(lines) if lines_of else ""),
        "traceback": LeafForm(str(error.__traceback__ is not None)),
    }
    if error.__cause__ is not None:
        parts["cause"] = _exception(error.__cause__, lines_of)
    if error.__context__ is not None:
        parts["context"] = _exception(error.__context__, lines_of)
    return ObjectForm(type(error).__qualname__, None, parts)


class _Describer:
    """Turns objects into forms; numbers objects and memories in the order in which it meets them."""

    def __init__(self, given: Container[int]) -> None:
        self._given = given
        self._objects: dict[int, tuple[int, object]] = {}
        self._storages: dict[int, int] = {}
        self._inside: set[int] = set()

    def form(self, value: Any) -> Form:
        if isinstance(value, torch.Tensor):
            return self._tensor(value)
        if (
            isinstance(value, (int, float, complex, str, bytes, type(None)))
            and type(value).__module__ == "builtins"
        ):
            return LeafForm(_number_text(value))
        known = id(value) in self._objects
        identity = self._objects.setdefault(id(value), (len(self._objects), value))[0]
        kind = type(value).__qualname__
        if known or isinstance(
            value, (type, types.FunctionType, types.BuiltinFunctionType, types.ModuleType)
        ):
            return ObjectForm(kind, identity, {"name": LeafForm(getattr(value, "__qualname__", ""))})
        return ObjectForm(kind, identity, {name: self.form(part) for name, part in _parts(value)})

    def _tensor(self, tensor: torch.Tensor) -> Form:
        with torch._C.DisableTorchFunctionSubclass():  # a class of the program may answer for any attribute
            return self._tensor_itself(tensor)

    def _tensor_itself(self, tensor: torch.Tensor) -> Form:
        seen = id(tensor) in self._objects
        identity = self._objects.setdefault(id(tensor), (len(self._objects), tensor))[0]
        if hasattr(type(tensor), "__tensor_flatten__"):
            names, context = tensor.__tensor_flatten__()  # type: ignore[attr-defined]
            inner = {name: self.form(getattr(tensor, name)) for name in names}
            return ObjectForm(type(tensor).__qualname__, identity, {**inner, "context": self.form(context)})
        strided = tensor.layout == torch.strided
        facts = {
            "class": type(tensor).__qualname__,
            "identity": identity,
            "dtype": tensor.dtype,
            "device": tensor.device,
            "layout": tensor.layout,
            "shape": tuple(torch.Tensor.size(tensor)),
            "strides": _telling_strides(tensor) if strided else None,
            "all strides": torch.Tensor.stride(tensor) if strided else None,
            "offset": tensor.storage_offset() if strided else None,
            "requires_grad": tensor.requires_grad,
            "is_leaf": tensor.is_leaf,
            "has history": tensor.grad_fn is not None,
            "is inference": tensor.is_inference(),
            "conj": tensor.is_conj(),
            "neg": tensor.is_neg(),
        }
        storage, counter = None, "version"
        if strided and tensor.device.type != "meta":
            memory = tensor.untyped_storage()
            storage = self._storages.setdefault(memory._cdata, len(self._storages))
            self._objects.setdefault(id(memory), (-1, memory))
            counter = "version" if memory._cdata in self._given else "own version"
        facts[counter] = None if tensor.is_inference() else tensor._version
        content = tensor.detach().as_subclass(torch.Tensor).resolve_conj().resolve_neg().clone()
        grad = None
        if tensor.is_leaf and tensor.grad is not None and not seen:
            grad = self.form(tensor.grad)
        return TensorForm(facts, storage, content, grad)


def _parts(value: Any) -> Iterable[tuple[str, Any]]:
    """What an object consists of, past what its class says of iterating, reading and printing it."""
    kinds = type(value).__mro__
    own = _own_attributes(value, kinds)
    if torch.nn.Module in kinds:
        own = {name: item for name, item in own.items() if name not in _HOOKS_OF_MODULES}
    yield from sorted(own.items())
    base: Any = next((kind for kind in kinds if kind in _CONTAINERS), None)
    if base in (list, tuple, deque):
        yield from ((f"[{at}]", item) for at, item in enumerate(base.__iter__(value)))
    elif base in (dict, types.MappingProxyType):
        for at, (key, item) in enumerate(base.items(value)):
            yield f"key {at}", key
            yield f"[{at}]", item
    elif base in (set, frozenset):
        yield from ((f"item {at}", item) for at, item in enumerate(sorted(base.__iter__(value), key=repr)))
    elif BaseException in kinds:
        yield "args", value.args
    elif isinstance(value, types.MethodType):
        yield "function", value.__func__
        yield "self", value.__self__
    elif base is not None:
        yield "value", base.__repr__(value)
    elif not own and type(value).__eq__ is not _BY_IDENTITY and type(value).__repr__ is not _BY_ADDRESS:
        yield "text", repr(value)


_CONTAINERS = (list, tuple, deque, dict, types.MappingProxyType, set, frozenset, int, float, str, bytes)
_HOOKS_OF_MODULES = frozenset(vars(torch.nn.Module())) - {"_parameters", "_buffers", "_modules", "training"}


def _own_attributes(value: Any, kinds: tuple[type, ...]) -> dict[str, Any]:
    """The instance's dictionary and slots."""
    if torch.Tensor in kinds or not any(kind.__flags__ & _HEAP_TYPE for kind in kinds):
        return {}
    found: dict[str, Any] = {}
    for kind in kinds:
        for name, slot in vars(kind).items():
            if (
                isinstance(slot, types.MemberDescriptorType)
                and name[:2] != "__"
                and kind.__flags__ & _HEAP_TYPE
            ):
                with contextlib.suppress(AttributeError):
                    found[name] = slot.__get__(value)
    with contextlib.suppress(AttributeError, TypeError):
        space = object.__getattribute__(value, "__dict__")
        found.update(space if type(space) is dict else {})
    return {str(name): item for name, item in found.items()}


def _number_text(value: Any) -> str:
    if isinstance(value, float) and math.isnan(value):
        return "float nan"
    return f"{type(value).__name__} {value!r}"


class _Comparison:
    def __init__(self, values: CompareValues, left_out: frozenset[str]) -> None:
        self._values = values
        self._left_out = left_out

    def __call__(self, where: str, one: Form | None, two: Form | None) -> list[str]:
        match one, two:
            case TensorForm(), TensorForm():
                return self._tensors(where, one, two)
            case ObjectForm(), ObjectForm():
                return self._objects(where, one, two)
            case _:
                return [] if one == two else [f"{where}: {_words(one)} is {_words(two)}"]

    def _objects(self, where: str, one: ObjectForm, two: ObjectForm) -> list[str]:
        if one.kind != two.kind:
            return [f"{where}: {one.kind} {_words(one)} is {two.kind} {_words(two)}"]
        found = []
        if one.identity != two.identity and "identity" not in self._left_out:
            found.append(f"{where}: object number {one.identity} is number {two.identity}")
        if list(one.parts) != list(two.parts):
            return [*found, f"{where}: parts {list(one.parts)} are {list(two.parts)}"]
        for name, part in one.parts.items():
            if name not in self._left_out:
                found += self(f"{where}.{name}", part, two.parts[name])
        return found

    def _tensors(self, where: str, one: TensorForm, two: TensorForm) -> list[str]:
        left_out = self._left_out
        if where.endswith(".grad") and "grad version" in left_out:
            left_out |= {"version", "own version"}
        found = [
            f"{where}: {name} {fact} is {two.facts.get(name)}"
            for name, fact in one.facts.items()
            if fact != two.facts.get(name) and name not in left_out and not _no_strides(name, one)
        ]
        if one.storage != two.storage and "storage" not in self._left_out:
            found.append(f"{where}: memory number {one.storage} is number {two.storage}")
        if one.facts["shape"] == two.facts["shape"] and one.facts["dtype"] == two.facts["dtype"]:
            differ = self._values(one.content, two.content)
            found += [] if differ is None else [f"{where}: {differ}"]
        return found + ([] if "grad" in self._left_out else self(f"{where}.grad", one.grad, two.grad))


def _memories(values: Any) -> frozenset[int]:
    """What identifies the memories of tensors, and of tensors in lists and dicts."""
    with torch._C.DisableTorchFunctionSubclass():
        return frozenset(
            t.untyped_storage()._cdata
            for t in _tensors(values)
            if t.layout == torch.strided and not hasattr(type(t), "__tensor_flatten__")
        )


def _telling_strides(tensor: torch.Tensor) -> tuple[int | None, ...]:
    """The strides of dimensions of more than one item; those of others are among ``all strides`` only."""
    pairs = zip(torch.Tensor.stride(tensor), torch.Tensor.size(tensor), strict=True)
    return tuple(None if size == 1 else stride for stride, size in pairs)


def _no_strides(name: str, form: TensorForm) -> bool:
    """Strides of tensors without items say nothing."""
    return name in ("strides", "all strides") and 0 in form.content.shape


def _equal_bits(one: torch.Tensor, two: torch.Tensor) -> bool:
    if one.layout != torch.strided:
        return one.layout == two.layout and _equal_bits(one.to_dense(), two.to_dense())
    if one.is_complex():
        return _equal_bits(torch.view_as_real(one), torch.view_as_real(two))
    if not one.is_floating_point():
        return bool(torch.equal(one, two))
    both_nan = torch.isnan(one) & torch.isnan(two)
    same = (one == two) & (torch.signbit(one) == torch.signbit(two))
    return bool((same | both_nan).all())


def _shown(tensor: torch.Tensor) -> str:
    return " ".join(repr(tensor).split())[:300]


def _words(form: Form | None) -> str:
    match form:
        case None:
            return "nothing"
        case LeafForm():
            return form.text
        case TensorForm():
            return _shown(form.content)
        case ObjectForm():
            return f"{form.kind}({', '.join(f'{name}={_words(part)}' for name, part in form.parts.items())})"[
                :300
            ]
