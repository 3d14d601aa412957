"""Where two outcomes differ."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import torch

from fx_interface.conformance.outcomes.forms import (
    Form,
    LeafForm,
    ObjectForm,
    Outcome,
    TensorForm,
    in_words,
    tensor_in_words,
)

_VERSIONS: Final = re.compile(r"is at version \d+; expected version \d+ instead")

CompareValues = Callable[[torch.Tensor, torch.Tensor], str | None]


def differences(
    expected: Outcome,
    actual: Outcome,
    values: CompareValues | None = None,
    ignore: Iterable[str] = (),
    gradients: CompareValues | None = None,
) -> list[str]:
    """One line for each place where two outcomes differ; empty if nobody can tell them apart.

    ``values`` compares two tensors of equal dtype and shape and says in words how they differ (``same_bits`` if
    None); ``gradients`` does so for gradients, if given. ``ignore``: names of an outcome's parts, or of
    tensors' facts, that do not count; "grad version" stands for the versions of gradients, which count how
    often they were added to, "grad layout" for their strides of dimensions of one item and where they begin in their
    memory, "own version" also for the numbers in which torch says that a saved tensor was overwritten, and "refused
    backward" for a backward that raises in ``expected`` and what is seen after it.
    """
    left_out = frozenset(ignore)
    names = [name for name in {**expected.forms, **actual.forms} if name not in left_out]
    if "refused backward" in left_out and expected.backward_raised:
        names = [name for name in names if not name.endswith("backward")]
    compare = _Comparison(values or same_bits, gradients or values or same_bits, left_out)
    found: list[str] = []
    for name in names:
        found += compare(name, expected.forms.get(name), actual.forms.get(name))
    return found


def same_bits(one: torch.Tensor, two: torch.Tensor) -> str | None:
    """None if two tensors hold the same bits, NaN payloads aside."""
    if _equal_bits(one, two):
        return None
    return f"{tensor_in_words(one)} is {tensor_in_words(two)}"


def rounding(relative: float, absolute: float) -> CompareValues:
    """A comparison of floating point numbers up to a tolerance; NaN, infinities and other types must be the same."""

    def compare(one: torch.Tensor, two: torch.Tensor) -> str | None:
        if not (one.is_floating_point() or one.is_complex()) or one.dtype.itemsize == 1:
            return same_bits(one, two)
        if one.is_nested or one.layout != torch.strided:
            is_alike = one.layout == two.layout and one.is_nested == two.is_nested
            return compare(_dense(one), _dense(two)) if is_alike else same_bits(one, two)
        close = torch.isclose(one, two, rtol=relative, atol=absolute, equal_nan=True)
        return None if bool(close.all()) else f"{tensor_in_words(one)} is {tensor_in_words(two)}"

    return compare


def _dense(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to_padded_tensor(0.0) if tensor.is_nested else tensor.to_dense()


def _without_versions(text: str) -> str:
    return _VERSIONS.sub("is at another version", text)


class _Comparison:
    def __init__(self, values: CompareValues, gradients: CompareValues, left_out: frozenset[str]) -> None:
        self._values = values
        self._gradients = gradients
        self._left_out = left_out

    def __call__(self, where: str, one: Form | None, two: Form | None) -> list[str]:
        match one, two:
            case TensorForm(), TensorForm():
                return self._tensors(where, one, two)
            case ObjectForm(), ObjectForm():
                return self._objects(where, one, two)
            case LeafForm(), LeafForm() if "own version" in self._left_out:
                same = _without_versions(one.text) == _without_versions(two.text)
                return [] if same else [f"{where}: {one.text} is {two.text}"]
            case _:
                return [] if one == two else [f"{where}: {in_words(one)} is {in_words(two)}"]

    def _objects(self, where: str, one: ObjectForm, two: ObjectForm) -> list[str]:
        if one.kind != two.kind:
            return [f"{where}: {one.kind} {in_words(one)} is {two.kind} {in_words(two)}"]
        found = []
        if one.identity != two.identity and "identity" not in self._left_out:
            found.append(f"{where}: object number {one.identity} is number {two.identity}")
        return found + self._parts(where, one.parts, two.parts)

    def _left_out_at(self, where: str) -> frozenset[str]:
        if not where.endswith(".grad"):
            return self._left_out
        return self._left_out.union(*(_OF_GRADIENTS.get(name, ()) for name in self._left_out))

    def _parts(self, where: str, one: Mapping[str, Form], two: Mapping[str, Form]) -> list[str]:
        left_out = self._left_out_at(where)
        counted = [[name for name in parts if name not in left_out] for parts in (one, two)]
        if counted[0] != counted[1]:
            return [f"{where}: parts {counted[0]} are {counted[1]}"]
        return [line for name in counted[0] for line in self(f"{where}.{name}", one[name], two[name])]

    def _tensors(self, where: str, one: TensorForm, two: TensorForm) -> list[str]:
        left_out = self._left_out_at(where)
        found = [
            f"{where}: {name} {fact} is {two.facts.get(name)}"
            for name, fact in one.facts.items()
            if fact != two.facts.get(name) and name not in left_out and not _no_strides(name, one)
        ]
        if one.storage != two.storage and "storage" not in self._left_out:
            found.append(f"{where}: memory number {one.storage} is number {two.storage}")
        if one.facts["shape"] == two.facts["shape"] and one.facts["dtype"] == two.facts["dtype"]:
            judge = self._gradients if where.endswith(".grad") else self._values
            differ = judge(one.content, two.content)
            found += [] if differ is None else [f"{where}: {differ}"]
        return found + self._parts(where, one.parts, two.parts)


_OF_GRADIENTS = {"grad version": ("version", "own version"), "grad layout": ("all strides", "offset")}


def _no_strides(name: str, form: TensorForm) -> bool:
    """Strides of tensors without items say nothing."""
    return name in ("strides", "all strides") and 0 in form.content.shape


def _equal_bits(one: torch.Tensor, two: torch.Tensor) -> bool:
    if one.layout != torch.strided:
        return one.layout == two.layout and _equal_bits(one.to_dense(), two.to_dense())
    if any(_names(one)) or any(_names(two)):
        return _names(one) == _names(two) and _equal_bits(_without_names(one), _without_names(two))
    if one.is_complex():
        return _equal_bits(torch.view_as_real(one), torch.view_as_real(two))
    if not one.is_floating_point():
        return bool(torch.equal(one, two))
    as_numbers = _OF_SIZE.get(one.dtype.itemsize)
    if as_numbers is not None and torch.equal(one.view(as_numbers), two.view(as_numbers)):
        return True
    if one.dtype.itemsize == 1:
        one, two = one.float(), two.float()
    both_nan = torch.isnan(one) & torch.isnan(two)
    same = (one == two) & (torch.signbit(one) == torch.signbit(two))
    return bool((same | both_nan).all())


def _names(tensor: torch.Tensor) -> tuple[str | None, ...]:
    """The names of dimensions, which torch 2.13 no longer has."""
    names: tuple[str | None, ...] = getattr(tensor, "names", ())
    return names


def _without_names(tensor: Any) -> torch.Tensor:
    plain: torch.Tensor = tensor.rename(None)
    return plain


_OF_SIZE = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
