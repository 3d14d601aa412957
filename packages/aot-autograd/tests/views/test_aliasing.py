"""How results are made from inputs and graph results, as the plan states it."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.fx import symbolic_trace
from torch.utils.checkpoint import checkpoint

from aot_autograd import JointPlan, compile_joint, trace_joint
from aot_autograd.plan import Apart, Constant, FromGraph, FromInput, MutatedInput, SameAs, ViewOf
from fx_interface.errors import UnsupportedProgramError
from fx_interface.tensor_spec import TensorSpec


def plan_of(function: Any, library: Any, *inputs: torch.Tensor) -> JointPlan:
    return trace_joint(symbolic_trace(function), list(inputs), operators=library).plan


def test_a_pure_program_needs_no_wrapping(library: Any) -> None:
    assert plan_of(lambda x: (x.sin(), x.cos()), library, torch.ones(3)).is_plain


def test_inputs_and_constants_are_not_results_of_the_graph(library: Any) -> None:
    plan = plan_of(lambda x: (x, 3, None, x.exp()), library, torch.ones(3))
    assert plan.recipes == (FromInput(0), Constant(3), Constant(None), FromGraph(0))


def test_views_of_inputs_are_made_again(library: Any) -> None:
    (recipe,) = plan_of(lambda x: (x.t()[0],), library, torch.ones(3, 4)).recipes
    assert isinstance(recipe, ViewOf)
    assert recipe.base == FromInput(0)
    assert [step.op for step in recipe.steps] == ["aten::t.default", "aten::select.int"]


def test_negated_and_conjugated_results_are_made_again(library: Any) -> None:
    """A compiled graph has no tensors that are marked so, only numbers."""
    conjugated = torch.complex(torch.ones(3), torch.ones(3)).conj()
    for program in (lambda x: (torch.complex(x, x).conj().imag,), lambda x: (torch.complex(x, x).conj(),)):
        (recipe,) = plan_of(program, library, torch.ones(3)).recipes
        assert isinstance(recipe, ViewOf)
        assert recipe.base == FromGraph(0)
        run = compile_joint(
            symbolic_trace(program), [torch.ones(3)], operators=library, forward_compiler=lambda graph: graph
        )
        (result,) = run(torch.ones(3))
        assert (result.is_neg(), result.is_conj()) == (not result.is_complex(), result.is_complex())
        assert torch.equal(result, conjugated if result.is_complex() else conjugated.imag)


def test_results_that_share_memory_share_a_base(library: Any) -> None:
    def function(x: Any) -> Any:
        y = x.exp()
        return y, y[0], y

    plan = plan_of(function, library, torch.ones(3, 4))
    assert plan.returned == 1
    assert plan.recipes[0] == FromGraph(0)
    assert isinstance(plan.recipes[1], ViewOf)
    assert plan.recipes[2] == SameAs(0)


def test_mutation_is_a_result_of_the_graph(library: Any) -> None:
    plan = plan_of(lambda x, y: x.add_(y) * 2, library, torch.ones(3), torch.ones(3))
    assert plan.mutated == (MutatedInput(0, 1, False),)
    assert plan.apart == Apart((0,), (1,))


def test_a_write_that_is_undone_is_no_mutation(library: Any) -> None:
    def function(x: Any, y: Any) -> Any:
        return x.copy_(y).sum()

    x = torch.ones(3)
    assert plan_of(function, library, x, torch.ones(3)).mutated
    assert not plan_of(lambda x: x.copy_(x).sum(), library, x).mutated


def test_what_is_there_already_is_not_written_to_a_tensor_that_autograd_follows(library: Any) -> None:
    """Its content stays, its history would not; eager refuses it if the tensor is a view of a leaf."""
    given = torch.ones(2, 3, requires_grad=True)[:1]
    for function in (lambda x: x.copy_(x), lambda x: x.copy_(x.clone()), lambda x: x.t().copy_(x.t())):
        with pytest.raises(UnsupportedProgramError, match="AOT125"):
            plan_of(function, library, given)


def test_overlapping_inputs_of_which_one_is_written_are_refused(library: Any) -> None:
    base = torch.ones(4)
    with pytest.raises(UnsupportedProgramError, match="AOT201"):
        plan_of(lambda x, y: x.add_(y), library, base[:3], base[1:])


def test_a_history_that_views_cannot_explain_is_refused(library: Any) -> None:
    def function(x: Any) -> Any:
        x.detach().copy_(x * 2)
        return x.detach().copy_(x.sum())

    with pytest.raises(UnsupportedProgramError, match="AOT117"):
        plan_of(function, library, torch.ones(3, requires_grad=True))


@pytest.mark.parametrize(
    ("function", "code"),
    [
        (lambda x: x.resize_(9), "AOT112"),
        (lambda x: x.sum().item(), "AOT106"),
        (lambda x: x @ x, "AOT101"),
        (lambda x: {1: x}, "AOT113"),
    ],
)
def test_refusals_have_codes(function: Any, code: str, library: Any) -> None:
    with pytest.raises(UnsupportedProgramError) as caught:
        plan_of(function, library, torch.ones(2, 3))
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("function", "code"),
    [
        (lambda x: x[x > 0], "AOT118"),
        (lambda x: x.nonzero(), "AOT118"),
    ],
)
def test_what_data_decides_is_refused(function: Any, code: str, compiled: Any) -> None:
    state = torch.get_rng_state()
    with pytest.raises(UnsupportedProgramError) as caught:
        compiled(function)(torch.ones(2, 3))
    assert caught.value.code == code
    assert torch.equal(torch.get_rng_state(), state)


def test_drawing_again_in_the_backward_is_refused(compiled: Any) -> None:
    def function(x: torch.Tensor) -> Any:
        return checkpoint(lambda x: torch.nn.functional.dropout(x).exp(), x, use_reentrant=False)

    with pytest.raises(UnsupportedProgramError, match="AOT119"):
        compiled(function)(torch.ones(3, requires_grad=True))


class Tagged(torch.Tensor):
    """A subclass whose operators return the subclass."""


@pytest.mark.parametrize(
    "given",
    [
        torch.ones(3).as_subclass(Tagged),
        torch.ones(3).to_sparse(),
    ],
)
def test_inputs_that_are_no_ordinary_tensors_are_refused(given: torch.Tensor, library: Any) -> None:
    spec = TensorSpec((3,), (1,), given.dtype, given.device)
    graph = symbolic_trace(lambda x: x * 2)
    graph.graph.find_nodes(op="placeholder")[0].meta["spec"] = spec
    with pytest.raises(UnsupportedProgramError, match="AOT102"):
        trace_joint(graph, [given], operators=library)


@pytest.mark.parametrize("order", [1, -1])
def test_two_objects_of_one_memory_are_told_apart_by_autograd(
    order: int, library: Any, interpreter: Any
) -> None:
    def function(x: Any) -> Any:
        h = x * 2
        return (h, h.detach())[::order]

    run = compile_joint(
        symbolic_trace(function), [torch.ones(3)], operators=library, forward_compiler=interpreter
    )
    for asked in (0, 1):
        results = run(torch.ones(3))
        assert results[0].data_ptr() == results[1].data_ptr()
        results[asked].requires_grad_()
        assert [result.requires_grad for result in results] == [asked == 0, asked == 1]


def test_a_copy_of_what_was_written_to_a_part_of_a_memory_has_a_memory_of_its_own(compiled: Any) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        x.logical_not_()
        return x.clone()

    x = torch.arange(100, dtype=torch.int32)[3:7]
    result = compiled(function)(x)
    assert (result.tolist(), result.storage_offset(), result.untyped_storage().nbytes()) == ([0] * 4, 0, 16)


def _square_on_its_side(x: Any) -> Any:
    made = x * 2
    made.t_()
    return (made,)


def _with_views_of_it(x: Any) -> Any:
    made = x * 2
    made.transpose_(0, 1)
    return made, made[0], made.view(2, 1, 3)


def _written_afterwards(x: Any) -> Any:
    made = x.sum(-1)
    made.unsqueeze_(0)
    return (made.mul_(2),)


def _of_fewer_elements(x: Any) -> Any:
    made = x.clone()
    return (made.as_strided_((2,), (1,)),)


@pytest.mark.parametrize("trained", [True, False])
@pytest.mark.parametrize(
    "function", [_square_on_its_side, _with_views_of_it, _written_afterwards, _of_fewer_elements]
)
def test_a_new_tensor_that_takes_another_form_is_no_view(
    function: Any, trained: bool, library: Any, interpreter: Any
) -> None:
    x = torch.arange(6.0).reshape(2, 3).t().contiguous().requires_grad_(trained)
    run = compile_joint(symbolic_trace(function), [x], operators=library, forward_compiler=interpreter)
    expected, found = function(x), run(x)
    for one, other in zip(expected, found, strict=True):
        assert torch.equal(one, other)
        assert (one.stride(), one._is_view()) == (other.stride(), other._is_view())
        assert one._base is None or other._base is found[0]
    if trained:
        gradients = [torch.autograd.grad(sum(r.sum() for r in made), [x]) for made in (expected, found)]
        assert torch.equal(*(gradient for (gradient,) in gradients))
    found[0].detach_()


@pytest.mark.parametrize(
    "write", [lambda x: x[1:].mul_(2), lambda x: x[0].zero_(), lambda x: x.diagonal().add_(1)]
)
def test_a_copy_of_what_was_written_begins_where_eagers_does(compiled: Any, write: Any) -> None:
    """``slice_scatter`` and its kin copy all memory of their argument."""

    def program(x: torch.Tensor) -> torch.Tensor:
        write(x)
        return x.clone()

    mine, eagers = (torch.arange(12.0)[3:].view(3, 3).clone() for _ in range(2))
    mine, eagers = (torch.cat([torch.zeros(3), x.reshape(-1)])[3:].view(3, 3) for x in (mine, eagers))
    result = compiled(program)(mine)
    assert torch.equal(result, program(eagers))
    assert (result.storage_offset(), result.untyped_storage().nbytes()) == (0, 36)
