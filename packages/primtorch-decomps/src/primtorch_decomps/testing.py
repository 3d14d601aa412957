"""Checks of one operator against eager: its spec against the real result's, its decomposition against its values.

For the tests of this package and of whoever adds an operator. Each check raises AssertionError with the difference.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.fx import Graph, GraphModule, Node

from fx_interface.dialects.prims import PrimOp
from fx_interface.signature import DIALECT_KEY, SHAPE_ENV_KEY
from fx_interface.symbols import Expr, IntLike, ShapeEnv, Symbol, evaluate
from fx_interface.tensor_spec import SPEC_KEY, SymSpec, TensorSpec, ValueSpec, spec_of
from primtorch_decomps import LIBRARY, decompose
from primtorch_decomps.registry import overload


def check_operator(
    name: str,
    *args: Any,
    library_call: bool = False,
    slack: float = 4.0,
    magnitude: float = 0.0,
    **kwargs: Any,
) -> None:
    """All checks of one call of the operator called ``name``; the options are those of ``check_values``."""
    op = overload(name)
    assert op is not None, f"this version of torch has no {name}"
    check_spec(op, args, kwargs)
    check_symbolic_spec(op, args, kwargs)
    if not library_call:
        check_symbolic_values(op, args, kwargs)
    check_values(op, args, kwargs, slack=slack, magnitude=magnitude, library_call=library_call)


def specs_of(value: Any) -> Any:
    """Arguments with tensors replaced by their specs."""
    return _map_tensors(value, spec_of)


def _map_tensors(value: Any, function: Callable[[Tensor], Any]) -> Any:
    if isinstance(value, Tensor):
        return function(value)
    if isinstance(value, (list, tuple)):
        return type(value)(_map_tensors(item, function) for item in value)
    if isinstance(value, Mapping):
        return {name: _map_tensors(item, function) for name, item in value.items()}
    return value


def check_spec(op: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """The library's spec of ``op`` equals that of the real result, strides included."""
    expected = op(*args, **kwargs)
    env = ShapeEnv()
    found = LIBRARY.infer(op, specs_of(tuple(args)), specs_of(kwargs), env)
    if env.symbols:
        check_spec_by_data(expected, found, env, str(op))
    else:
        _compare_spec(expected, found, str(op))


def check_spec_by_data(
    expected: Any, found: ValueSpec, env: ShapeEnv, what: str, known: Mapping[Symbol, int] | None = None
) -> None:
    """A spec with sizes that only data tell equals the real result's for these data, which lie in their ranges.

    ``known``: the other symbols' values. Strides over dimensions of size 0 and 1 address nothing.
    """
    values: dict[Symbol, int] = dict(known or {})
    _bind(expected, found, values)
    for atom, value in values.items():
        span = env.symbols[atom].range
        assert span.low is None or span.low <= value, (what, atom)
        assert span.high is None or value <= span.high, (what, atom)
    flat = expected if isinstance(expected, (list, tuple)) else [expected]
    told = _evaluated(found, values)
    if isinstance(expected, int):
        assert told == SymSpec(expected), (what, told)
    elif all(size > 1 for tensor in flat for size in tensor.shape):
        _compare_spec(expected, told, what)
    else:
        specs = told if isinstance(told, (list, tuple)) else [told]
        for tensor, spec in zip(flat, specs, strict=True):
            assert isinstance(spec, TensorSpec)
            assert (tuple(tensor.shape), tensor.dtype, tensor.device) == (
                spec.sizes,
                spec.dtype,
                spec.device,
            ), what


def _bind(expected: Any, found: ValueSpec, values: dict[Symbol, int]) -> None:
    """The values of symbols that are a size of a result, or the result itself."""
    if isinstance(found, (list, tuple)):
        for one, other in zip(expected, found, strict=True):
            _bind(one, other, values)
        return
    pairs = zip(expected.shape, found.sizes, strict=True) if isinstance(found, TensorSpec) else ()
    for real, size in [(expected, found.expr)] if isinstance(found, SymSpec) else pairs:
        atom = size.as_symbol if isinstance(size, Expr) else None
        if atom is not None:
            values.setdefault(atom, real)


def _compare_spec(expected: Any, found: ValueSpec, what: str) -> None:
    if isinstance(expected, (list, tuple)):
        assert isinstance(found, type(expected)), (what, type(expected), found)
        assert len(found) == len(expected), (what, len(expected), found)
        for place, (one, other) in enumerate(zip(expected, found, strict=True)):
            _compare_spec(one, other, f"{what}[{place}]")
    elif expected is None:
        assert found is None, (what, found)
    else:
        assert isinstance(found, TensorSpec), (what, found)
        facts = (tuple(expected.shape), expected.stride(), expected.dtype, expected.device)
        told = (found.sizes, found.strides, found.dtype, found.device)
        assert facts == told, f"{what}: eager gives {facts}, the rule {told}"


class SymbolicTwins:
    """Specs of tensors with each size above 1 a symbol (one for each distinct size), strides following suit."""

    def __init__(self) -> None:
        self.env = ShapeEnv()
        self._symbols: dict[int, Expr] = {}

    def __call__(self, tensor: Tensor) -> TensorSpec:
        sizes = tuple(self._size(n) for n in tensor.shape)
        return TensorSpec(sizes, _symbolic_strides(tensor, sizes), tensor.dtype, tensor.device)

    def _size(self, value: int) -> IntLike:
        if value < 2:
            return value
        if value not in self._symbols:
            self._symbols[value] = self.env.create_symbol(value)
        return self._symbols[value]

    @property
    def hints(self) -> dict[Symbol, int]:
        """Each symbol's value."""
        return {atom: info.hint for atom, info in self.env.symbols.items() if info.hint is not None}


def _symbolic_strides(tensor: Tensor, sizes: Sequence[Any]) -> tuple[Any, ...]:
    """Strides as products of the sizes further inside, where the tensor is dense in some order; else as they are."""
    order = sorted(range(tensor.dim()), key=lambda d: (tensor.stride(d), -d))
    strides: list[Any] = list(tensor.stride())
    running: Any = 1
    count = 1
    for axis in order:
        if tensor.stride(axis) != count:
            return tensor.stride()
        strides[axis] = running
        running, count = running * sizes[axis], count * tensor.shape[axis]
    return tuple(strides)


def check_symbolic_spec(op: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """With symbolic tensor sizes, the spec evaluated at the hints equals that of the real result."""
    expected = op(*args, **kwargs)
    twins = SymbolicTwins()
    found = LIBRARY.infer(op, _map_tensors(tuple(args), twins), _map_tensors(dict(kwargs), twins), twins.env)
    if any(True for _ in twins.env.unbacked()):
        return check_spec_by_data(expected, found, twins.env, f"{op} symbolically", twins.hints)
    _compare_spec(expected, _evaluated(found, twins.hints), f"{op} symbolically")
    assert all(guard.relation.holds(twins.hints) for guard in twins.env.guards), twins.env.guards


def check_open_spec(name: str, *args: Any, **kwargs: Any) -> None:
    """The rule of the operator called ``name`` gives eager's layout, and no size becomes a constant."""
    op = overload(name)
    assert op is not None, f"this version of torch has no {name}"
    check_spec(op, args, kwargs)
    check_symbolic_spec(op, args, kwargs)
    twins = SymbolicTwins()
    LIBRARY.infer(op, _map_tensors(tuple(args), twins), _map_tensors(dict(kwargs), twins), twins.env)
    fixed = [guard.relation for guard in twins.env.guards if guard.fixes]
    assert not fixed, f"{name} fixes sizes: {fixed}"


def check_symbolic_values(op: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Decomposed under symbolic sizes, the call computes what it computes decomposed under plain ones."""
    module, inputs = aten_graph(op, args, kwargs)
    twins = SymbolicTwins()
    symbolic, _ = aten_graph(op, args, kwargs, specs=twins, env=twins.env)
    (expected,), (found,) = decompose(module)(*inputs), decompose(symbolic)(*inputs)
    pairs = zip(_leaves(expected), _leaves(found), strict=True)
    for one, other in pairs:
        torch.testing.assert_close(other, one, equal_nan=True, msg=lambda text: f"{op} symbolically: {text}")


def _leaves(value: Any) -> list[Tensor]:
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in _leaves(item)]
    return [] if value is None else [value]


def _evaluated(spec: ValueSpec, hints: Mapping[Any, int]) -> ValueSpec:
    match spec:
        case TensorSpec():
            sizes = tuple(evaluate(n, hints) for n in spec.sizes)
            return TensorSpec(sizes, tuple(evaluate(n, hints) for n in spec.strides), spec.dtype, spec.device)
        case list():
            return [_evaluated(item, hints) for item in spec]
        case tuple():
            return tuple(_evaluated(item, hints) for item in spec)
        case SymSpec():
            return SymSpec(evaluate(spec.expr, hints))
    return spec


def aten_graph(
    op: OpOverload,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    specs: Callable[[Tensor], TensorSpec] = spec_of,
    env: ShapeEnv | None = None,
) -> tuple[GraphModule, list[Tensor]]:
    """A graph of the one call, its tensors as inputs of the given ``specs``, and those inputs."""
    env = env or ShapeEnv()
    graph = Graph()
    inputs: list[Tensor] = []

    def enter(tensor: Tensor) -> Node:
        node = graph.placeholder(f"x{len(inputs)}")
        node.meta[SPEC_KEY] = specs(tensor)
        inputs.append(tensor)
        return node

    call = graph.call_function(op, _map_tensors(tuple(args), enter), _map_tensors(dict(kwargs), enter))
    call.meta[SPEC_KEY] = LIBRARY.infer(
        op, _map_tensors(tuple(args), specs), _map_tensors(dict(kwargs), specs), env
    )
    graph.output((call,))
    module = GraphModule(torch.nn.Module(), graph)
    module.meta[DIALECT_KEY] = "aten"
    module.meta[SHAPE_ENV_KEY] = env
    return module, inputs


def check_values(
    op: OpOverload,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    *,
    slack: float = 4.0,
    magnitude: float = 0.0,
    library_call: bool = False,
) -> GraphModule:
    """The decomposed call computes what eager computes: as near to the float64 result as eager, within ``slack``.

    One rounding of the largest result, or of ``magnitude`` (of the terms that a small sum is made of), is allowed too.
    Returns the graph in dialect ``prims``. Unless ``library_call``, no ATen operator may be left in it.
    """
    module, inputs = aten_graph(op, args, kwargs)
    prims = decompose(module)
    left = [
        n.target for n in prims.graph.nodes if n.op == "call_function" and not isinstance(n.target, PrimOp)
    ]
    left = [target for target in left if isinstance(target, OpOverload) and target._schema.returns]
    assert bool(left) == library_call, (op, left)
    expected = op(*args, **kwargs)
    (found,) = prims(*inputs)
    referee = None
    if any(t.is_floating_point() for t in inputs):
        try:
            referee = _in_float64(op, args, kwargs)
        except RuntimeError:
            referee = None
    _compare_values(expected, found, referee, (slack, magnitude), str(op))
    return prims


def _in_float64(op: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    def widen(tensor: Tensor) -> Tensor:
        return tensor.double() if tensor.is_floating_point() else tensor

    options = {name: value for name, value in kwargs.items() if name != "dtype"}
    half = {torch.float32, torch.bfloat16, torch.float16}
    wide = [
        torch.float64 if isinstance(a, torch.dtype) and a in half else a
        for a in _map_tensors(list(args), widen)
    ]
    return op(*wide, **_map_tensors(options, widen))


def _compare_values(expected: Any, found: Any, referee: Any, bounds: tuple[float, float], what: str) -> None:
    if isinstance(expected, (list, tuple)):
        assert len(found) == len(expected), what
        for place, one in enumerate(expected):
            judge = referee[place] if isinstance(referee, (list, tuple)) else None
            _compare_values(one, found[place], judge, bounds, f"{what}[{place}]")
        return
    if expected is None:
        assert found is None, (what, found)
        return
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape), (what, found.dtype, found.shape)
    if not expected.is_floating_point() or referee is None or not referee.is_floating_point():
        torch.testing.assert_close(found, expected, equal_nan=True, msg=lambda text: f"{what}: {text}")
        return
    _compare_to_referee(expected, found, referee, bounds, what)


def _compare_to_referee(
    expected: Tensor, found: Tensor, referee: Tensor, bounds: tuple[float, float], what: str
) -> None:
    one, other, judge = expected.double(), found.double(), referee.double()
    special = ~(torch.isfinite(judge) & torch.isfinite(one))
    torch.testing.assert_close(
        other[special], one[special], equal_nan=True, msg=lambda text: f"{what}, special values: {text}"
    )
    one, other, judge = one[~special], other[~special], judge[~special]
    if not judge.numel():
        return
    ulps = 64 if expected.dtype is torch.float64 else 1  # the referee is no better than eager then
    slack, magnitude = bounds
    step = ulps * torch.finfo(expected.dtype).eps * judge.abs().max().clamp_min(max(magnitude, 1e-30))
    ours, eager = (other - judge).abs().max(), (one - judge).abs().max()
    assert ours <= slack * eager + step, f"{what}: off by {ours:.3g} where eager is off by {eager:.3g}"
