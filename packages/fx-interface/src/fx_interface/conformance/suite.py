"""What every backend must do, as a pytest class to subclass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor
from torch.fx import GraphModule

from fx_interface.conformance import network_cases as _network_cases
from fx_interface.conformance.cases import CASES, Case
from fx_interface.conformance.dynamic_cases import DYNAMIC_CASES, DynamicCase
from fx_interface.conformance.recorder import clone_inputs
from fx_interface.errors import UnsupportedProgramError
from fx_interface.serialization.hashing import canonical_form
from fx_interface.signature import SHAPE_ENV_KEY, signature_of
from fx_interface.symbols import Expr
from fx_interface.tensor_spec import SymSpec

_DECLARED = (_network_cases,)  # importing it declares its cases
_TOLERANCES = {torch.float64: 1e-10, torch.float32: 1e-5, torch.float16: 5e-3, torch.bfloat16: 3e-2}
_DIFFERENTIABLE = (
    "pointwise",
    "broadcasting",
    "float64",
    "comparisons_and_where",
    "reductions",
    "normalisation",
    "matrix_products",
    "convolution",
    "embedding",
    "joining",
    "several_results_of_one_operator",
    "strided_inputs",
    "channels_last",
    "view_of_an_input",
    "views_of_an_intermediate",
    "mutated_intermediate",
    "group_norm",
    "pooling",
    "convolution_1d",
    "attention",
    "attention_by_hand",
    "rotary_embedding",
    "losses",
    "activations",
    "scans_and_order",
    "gather_and_scatter",
    "shape_changes",
    "padding_and_resizing",
    "batched_products",
    "inplace_functions_on_intermediates",
)


class BackendConformance:
    """Set ``backend`` (a plain function needs ``staticmethod``). The flags say what a backend leaves to others.

    A case that is ``unsupported`` must raise UnsupportedProgramError when it is compiled, so that the caller can run
    eagerly; a case that is not must compile and agree with eager in values, types, strides, sharing and mutation.
    """

    backend: ClassVar[Callable[..., Any]]
    unsupported: ClassVar[frozenset[str]] = frozenset()
    supports_autograd: ClassVar[bool] = True
    """Whether results of inputs that require gradients can be differentiated (autograd is done by the backend)."""

    @pytest.mark.parametrize("case", [pytest.param(case, id=name) for name, case in CASES.items()])
    def test_agrees_with_eager(self, case: Case) -> None:
        graph = case.graph()
        examples = case.inputs()
        before = clone_inputs(examples)
        compiled = self._compile(case.name, graph, examples)
        _assert_same(examples, before, "the example inputs were changed while compiling")
        for inputs in (examples, _other_values(before)):
            given, expected_inputs = clone_inputs(inputs), clone_inputs(inputs)
            with torch.no_grad():
                results, expected = compiled(*given), graph(*expected_inputs)
            assert isinstance(results, (tuple, list)), (
                f"a compiled graph returns a tuple or list, not {type(results)}"
            )
            _assert_same(results, expected, "results")
            _assert_same(given, expected_inputs, "inputs after the call")
            if not case.mutates:
                assert [x._version for x in given] == [x._version for x in expected_inputs]
            assert _sharing([*results, *given]) == _sharing([*expected, *expected_inputs]), (
                "sharing of memory"
            )

    @pytest.mark.parametrize("case", [pytest.param(case, id=name) for name, case in DYNAMIC_CASES.items()])
    def test_symbolic_sizes(self, case: DynamicCase) -> None:
        graph = case.graph()
        compiled = self._compile(case.name, graph, case.inputs(case.sizes[0]))
        accepted = [sizes for sizes in case.sizes if _guards_hold(graph, sizes)]
        assert case.sizes[0] in accepted, (
            "the guards that were recorded do not hold for the sizes compiled for"
        )
        assert len(accepted) > 1, "the guards that were recorded leave only the sizes compiled for"
        for sizes in accepted:
            with torch.no_grad():
                _assert_same(
                    compiled(*case.inputs(sizes)), graph(*case.inputs(sizes)), f"results for sizes {sizes}"
                )

    @pytest.mark.parametrize("name", _DIFFERENTIABLE)
    def test_gradients(self, name: str) -> None:
        if not self.supports_autograd:
            pytest.skip("this backend leaves autograd to others")
        inputs = [x.requires_grad_(x.is_floating_point()) for x in CASES[name].inputs()]
        graph = Case(name, lambda: clone_inputs(inputs), CASES[name].program).graph()
        compiled = self._compile(name, graph, clone_inputs(inputs))
        given, expected = clone_inputs(inputs), clone_inputs(inputs)
        torch.autograd.backward(_weighted_sum(compiled(*given)))
        torch.autograd.backward(_weighted_sum(graph(*expected)))
        _assert_same([x.grad for x in given], [x.grad for x in expected], "gradients")

    def test_leaves_the_graph_as_it_was(self) -> None:
        graph = CASES["pointwise"].graph()
        before = canonical_form(graph)
        self._compile("pointwise", graph, CASES["pointwise"].inputs())
        assert canonical_form(graph) == before

    def test_compiled_graphs_are_independent(self) -> None:
        first, second = CASES["pointwise"], CASES["reductions"]
        compiled = [self._compile(case.name, case.graph(), case.inputs()) for case in (first, second, first)]
        for case, function in zip((first, second, first), compiled, strict=True):
            _assert_same(function(*case.inputs()), case.graph()(*case.inputs()), case.name)

    def test_results_are_not_reused(self) -> None:
        case = CASES["pointwise"]
        compiled = self._compile(case.name, case.graph(), case.inputs())
        (first,) = compiled(*case.inputs())
        kept = first.clone()
        compiled(*_other_values(case.inputs()))
        assert torch.equal(first, kept), "a later call wrote into an earlier call's result"

    def test_calls_from_threads(self) -> None:
        case = CASES["normalisation"]
        compiled = self._compile(case.name, case.graph(), case.inputs())
        expected = case.graph()(*case.inputs())
        with ThreadPoolExecutor(4) as pool:
            for results in pool.map(lambda _: compiled(*case.inputs()), range(32)):
                _assert_same(results, expected, "results in a thread")

    def _compile(self, name: str, graph: GraphModule, inputs: Sequence[Any]) -> Callable[..., Sequence[Any]]:
        if name in self.unsupported:
            with pytest.raises(UnsupportedProgramError):
                self.backend(graph, inputs)
            pytest.skip("unsupported, and said so")
        compiled: Callable[..., Sequence[Any]] = self.backend(graph, inputs)
        return compiled


def _assert_same(results: Sequence[Any], expected: Sequence[Any], what: str) -> None:
    assert len(results) == len(expected), f"{what}: {len(results)} of {len(expected)}"
    for position, (result, wanted) in enumerate(zip(results, expected, strict=True)):
        place = f"{what}, number {position}"
        if not isinstance(wanted, Tensor):
            assert type(result) is type(wanted), place
            assert result == wanted, place
            continue
        assert isinstance(result, Tensor), place
        assert (result.dtype, result.device, result.shape) == (wanted.dtype, wanted.device, wanted.shape), (
            place
        )
        assert _strides(result) == _strides(wanted), f"{place}: strides"
        tolerance = _TOLERANCES.get(wanted.dtype, 0.0)
        close = torch.isclose(result, wanted, rtol=tolerance, atol=tolerance, equal_nan=True)
        assert close.all(), f"{place}: {result} is not {wanted}"


def _strides(tensor: Tensor) -> list[int]:
    """Strides where they mean something: not of empty tensors, nor of dimensions of size 1."""
    if tensor.numel() == 0:
        return []
    return [stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if size != 1]


def _sharing(values: Sequence[Any]) -> set[tuple[int, int]]:
    """Which pairs of values share memory, and which are one object."""
    tensors = [(i, value) for i, value in enumerate(values) if isinstance(value, Tensor) and value.numel()]
    return {
        (i, j)
        for (i, x), (j, y) in combinations(tensors, 2)
        if x.untyped_storage().data_ptr() == y.untyped_storage().data_ptr()
    }


def _other_values(inputs: Sequence[Tensor]) -> list[Tensor]:
    """The inputs with other values of the same kind; integers, which may be indices, keep their values."""
    copies: list[Tensor] = clone_inputs(inputs)
    storages = {x.untyped_storage().data_ptr(): x for x in copies if x.is_floating_point()}
    for value in storages.values():
        flat = torch.empty(0, dtype=value.dtype).set_(value.untyped_storage())
        flat.mul_(-0.75).add_(0.125)
    return copies


def _guards_hold(graph: GraphModule, sizes: Sequence[int]) -> bool:
    env, signature = graph.meta[SHAPE_ENV_KEY], signature_of(graph)
    assert signature is not None
    values = {}
    for declared, size in zip(signature.inputs, sizes, strict=False):
        assert isinstance(declared.spec, SymSpec)
        assert isinstance(declared.spec.expr, Expr)
        values[declared.spec.expr.as_symbol] = size
    return all(guard.relation.holds(values) for guard in env.guards)


def _weighted_sum(results: Sequence[Any]) -> Tensor:
    total = torch.zeros((), dtype=torch.float64)
    for result in results:
        if isinstance(result, Tensor) and result.requires_grad:
            weights = torch.linspace(0.5, 1.5, result.numel(), dtype=torch.float64).reshape(result.shape)
            total = total + (result * weights).sum()
    return total
