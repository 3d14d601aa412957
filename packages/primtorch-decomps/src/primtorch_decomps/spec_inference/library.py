"""The operator library: specs of ATen results by rule, by running the decomposition on specs, or by a trial run."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch._ops import OpOverload

from fx_interface.operator_facts.collectives import is_collective
from fx_interface.symbols import Expr, Relation, ShapeEnv, Symbol, symbol
from fx_interface.tensor_spec import TensorSpec, ValueSpec
from primtorch_decomps.errors import RuleMismatchError
from primtorch_decomps.prims import PrimTensor, Trace, freeze, tracing
from primtorch_decomps.registry import Decomposition, OperatorTable
from primtorch_decomps.spec_inference.collectives import infer_collective
from primtorch_decomps.spec_inference.complex_numbers import spec_of_complex
from primtorch_decomps.spec_inference.fake_kernels import infer_by_fake, is_foreign
from primtorch_decomps.spec_inference.fallback import run_for_spec
from primtorch_decomps.spec_inference.refusals import Kernels

_LIMIT = 100_000
"""Memoised results kept before the memo starts anew."""

_PLAIN = frozenset({int, float, bool, str, type(None), Expr, torch.dtype, torch.device, torch.memory_format})
"""Types of arguments that are neither tensors, nor complex, nor hold any."""

_MISTAKES = (TypeError, ValueError, IndexError, KeyError)
"""What a rule raises without meaning to. The operator's own kernel is then asked, which refuses what the program got
wrong. Where it does not refuse, the mistake is the rule's, and is logged."""

_log = logging.getLogger(__name__)


class Library:
    """Implements ``fx_interface.operators.OperatorLibrary`` from a table of decompositions and a table of rules.

    Results are memoised by operator and arguments, for each ``ShapeEnv`` that has symbols and once for all others.
    """

    def __init__(self, decompositions: OperatorTable, rules: OperatorTable) -> None:
        self.decompositions = decompositions
        self.rules = rules
        self._kernels = Kernels()
        self._static: dict[object, ValueSpec] = {}
        self._symbolic: WeakKeyDictionary[ShapeEnv, dict[object, ValueSpec]] = WeakKeyDictionary()

    def infer(
        self, op: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any], env: ShapeEnv
    ) -> ValueSpec:
        """The spec of ``op``'s result. Tensors are given as ``TensorSpec``, sizes as int or ``Expr``.

        Raises what the operator itself would raise for bad arguments, and UnsupportedProgramError (DEC1xx) where no
        rule exists and a trial run cannot tell.
        """
        key = (op, torch.get_default_dtype(), freeze(args), freeze(kwargs) if kwargs else None)
        memo = self._memo(env)
        try:
            return memo[key]
        except KeyError:
            pass
        created = env.created
        spec = self._infer(op, args, kwargs, env)
        if env.created != created:
            return spec  # of this call only
        if memo is not self._static:
            try:
                is_settled = settle_sizes(spec, env)
            except RuleMismatchError:
                return self._infer_without_rule(op, args, kwargs, env)
            if is_settled:
                spec = self._infer(op, simplified(args, env), simplified(kwargs, env), env)
            if env.has_equalities:
                spec = simplified(spec, env)
            if env.has_data:
                _expect_sizes(spec, env)
        if len(memo) >= _LIMIT:
            memo.clear()
        memo[key] = spec
        return spec

    def _memo(self, env: ShapeEnv) -> dict[object, ValueSpec]:
        if not env.symbols:
            return self._static
        found = self._symbolic.get(env)
        if found is None:
            found = self._symbolic[env] = {}
        return found

    def _infer(
        self, op: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any], env: ShapeEnv
    ) -> ValueSpec:
        try:
            found = self.infer_by_rule(op, args, kwargs, env)
        except RuleMismatchError:
            found = NotImplemented
        except _MISTAKES as error:
            spec = self._infer_without_rule(op, args, kwargs, env)
            _log.error("the rule of %s fails for arguments that it takes", op, exc_info=error)
            return spec
        if found is NotImplemented or _has_negative_size(found):
            return self._infer_without_rule(op, args, kwargs, env)
        if op in self.decompositions or self._kernels.asks_about(op, args, kwargs):
            self._kernels.check(op, args, kwargs, env)
        return found  # type: ignore[no-any-return]

    def _infer_without_rule(
        self, op: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any], env: ShapeEnv
    ) -> ValueSpec:
        if is_collective(op):
            return infer_collective(op, args, kwargs, env)
        if is_foreign(op):
            return infer_by_fake(op, args, kwargs, env, self.infer)
        return run_for_spec(op, args, kwargs, env)

    def infer_by_rule(
        self, op: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any], env: ShapeEnv
    ) -> Any:
        """The spec by rule or decomposition alone; ``NotImplemented`` where there is neither."""
        rule = self.rules.get(op)
        if rule is not None and is_layout_rule(rule):
            return rule(*args, **kwargs, env=env)
        decomposition = self.decompositions.get(op) if rule is None else None
        if rule is None and decomposition is None:
            return NotImplemented

        def of_real(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
            if rule is not None:
                return rule(*args, **kwargs, env=env)
            assert decomposition is not None
            return _spec_only(decomposition, args, kwargs, env)

        return spec_of_complex(op, args, kwargs, env, of_real) if has_complex(args) else of_real(args, kwargs)


def settle_sizes(spec: ValueSpec, env: ShapeEnv) -> bool:
    """Make constants of derived sizes that are 0 or 1: such sizes act differently from others.

    Where the equality itself does not tell a size that it depends on (s1 = s0 + 1), those are constants too.
    Returns whether there were any; the question whether a size may be so is recorded in ``env`` where it is open. Sizes
    from data stay as they are: they may be anything. RuleMismatchError: one is negative for the sizes at hand.
    """
    if isinstance(spec, (list, tuple)):
        settled = [settle_sizes(part, env) for part in spec]
        return True in settled
    if not isinstance(spec, TensorSpec):
        return False
    found = False
    for size in spec.sizes:
        if (
            isinstance(size, Expr)
            and not _is_ordinary(size.as_symbol, env)
            and not env.is_from_data(size)
            and _is_special(size, env)
        ):
            found = True
            for atom in sorted(size.symbols, key=str) if isinstance(env.simplify(size), Expr) else ():
                env.specialize(symbol(atom.name))
    return found


def _expect_sizes(spec: ValueSpec, env: ShapeEnv) -> None:
    """No operator gives a tensor of negative size: where only data tell, it fails when the program runs."""
    for part in spec if isinstance(spec, (list, tuple)) else (spec,):
        for size in part.sizes if isinstance(part, TensorSpec) else ():
            if isinstance(size, Expr) and env.is_from_data(size):
                env.expect(Relation("<=", 0, size))


def _is_ordinary(size: Symbol | None, env: ShapeEnv) -> bool:
    """Whether the size is a symbol for at least 2, as a tensor's sizes are; a program's numbers may be anything."""
    known = None if size is None else env.symbols.get(size)
    return known is not None and known.range.low is not None and known.range.low > 1


def _is_special(size: Expr, env: ShapeEnv) -> bool:
    if not env.decide(Relation("<=", size, 1)):
        return False
    if env.decide(Relation("==", size, 0)) or env.decide(Relation("==", size, 1)):
        return True
    raise RuleMismatchError("a size is negative")


def _has_negative_size(spec: ValueSpec) -> bool:
    """Whether a rule took arguments that the operator refuses: a length, or a difference of sizes, below 0."""
    return any(
        type(size) is int and size < 0
        for part in (spec if isinstance(spec, (list, tuple)) else (spec,))
        for size in (part.sizes if isinstance(part, TensorSpec) else ())
    )


def simplified(value: Any, env: ShapeEnv) -> Any:
    """Specs and arguments after the equalities that ``env`` has learned."""
    if isinstance(value, Expr):
        return env.simplify(value)
    if isinstance(value, TensorSpec):
        if value.is_static:
            return value
        sizes, strides = (tuple(map(env.simplify, part)) for part in (value.sizes, value.strides))
        return replace(value, sizes=sizes, strides=strides)
    if isinstance(value, (list, tuple)):
        return type(value)(simplified(item, env) for item in value)
    if isinstance(value, Mapping):
        return {name: simplified(item, env) for name, item in value.items()}
    return value


def is_layout_rule(rule: Any) -> bool:
    """Whether a rule does not look at the dtype, so that it holds for complex numbers too."""
    return str(rule.__module__).startswith("primtorch_decomps.rules")


def has_complex(values: Sequence[Any]) -> bool:
    """Whether any tensor among the arguments is complex: no decomposition is written for those."""
    for value in values:
        if type(value) in _PLAIN:
            continue
        if isinstance(value, (TensorSpec, PrimTensor)):
            if value.dtype.is_complex:
                return True
        elif isinstance(value, complex) or (isinstance(value, (list, tuple)) and has_complex(value)):
            return True
    return False


def is_without_formulas(values: Sequence[Any]) -> bool:
    """Whether any tensor is complex, or of a dtype that is for storing (8-bit floats, wide unsigned integers): no
    decomposition is written for the first, and no kernel computes with the others, which torch's operators convert."""
    tensors = (value for value in _leaves(values) if isinstance(value, (TensorSpec, PrimTensor)))
    return has_complex(values) or any(_is_for_storing(tensor.dtype) for tensor in tensors)


def _leaves(values: Sequence[Any]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from _leaves(value)
        else:
            yield value


def _is_for_storing(dtype: torch.dtype) -> bool:
    if dtype.is_floating_point:
        return dtype.itemsize == 1
    return dtype.itemsize > 1 and not dtype.is_complex and not dtype.is_signed


def _spec_only(
    decomposition: Decomposition, args: Sequence[Any], kwargs: Mapping[str, Any], env: ShapeEnv
) -> ValueSpec:
    with tracing(Trace(env)):
        ready = [_proxy(a) for a in args]
        result = decomposition.function(*ready, **{name: _proxy(value) for name, value in kwargs.items()})
    return NotImplemented if result is NotImplemented else _spec(result)


def _proxy(value: Any) -> Any:
    if type(value) in _PLAIN:
        return value
    if isinstance(value, TensorSpec):
        return PrimTensor.of(value)
    if isinstance(value, (list, tuple)):
        return type(value)([_proxy(item) for item in value])
    return value


def _spec(result: Any) -> ValueSpec:
    if isinstance(result, PrimTensor):
        return result.spec
    if result is None:
        return None
    if isinstance(result, list):
        return [_spec(item) for item in result]
    return tuple([_spec(item) for item in result])
