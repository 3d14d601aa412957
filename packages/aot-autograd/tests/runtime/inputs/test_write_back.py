"""Inputs that a program writes to: by copy, or by a compiled graph that writes them itself and returns them."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from aot_autograd import aot_function
from aot_autograd.plan import MutatedInput
from aot_autograd.runtime.inputs.write_back import WriteBack
from fx_interface.signature import OutputKind, signature_of


def writing_itself(graph: Any) -> Any:
    """A compiler whose graphs write the new content of inputs and return the inputs, as generated code may."""
    signature = signature_of(graph)
    assert signature is not None

    def run(*inputs: Any) -> Any:
        results = list(graph(*inputs))
        for position, declared in enumerate(signature.outputs):
            if declared.kind is OutputKind.MUTATED_INPUT:
                assert declared.input_index is not None
                with torch.no_grad():
                    given = inputs[declared.input_index]
                    given.data.copy_(results[position])
                    results[position] = given
        return tuple(results)

    return run


def test_the_version_counts_each_write() -> None:
    copied, itself, untouched = torch.zeros(3), torch.zeros(3), torch.zeros(3)
    with torch.inference_mode():
        made = torch.zeros(3)
    inputs = (copied, untouched, itself, made)
    writes = [MutatedInput(0, 1, False), MutatedInput(2, 0, False), MutatedInput(3, 2, False)]
    WriteBack(writes)(inputs, (itself, torch.ones(3), made))
    assert (copied._version, copied.sum().item()) == (1, 3)
    assert (itself._version, untouched._version) == (1, 0)
    WriteBack([])(inputs, ())


def test_versions_of_inference_tensors_are_not_counted_and_those_around_them_are() -> None:
    with torch.inference_mode():
        first, second = torch.zeros(3), torch.zeros(3)
    plain = [torch.zeros(3) for _ in range(3)]
    inputs = [plain[0], first, plain[1], second, plain[2]]
    write = WriteBack([MutatedInput(i, i, False) for i in range(5)])
    write(inputs, inputs)
    with torch.inference_mode():
        write(inputs, inputs)
    assert [x._version for x in plain] == [2, 2, 2]


@pytest.mark.parametrize("later", [0, 1])
def test_several_writes_count_as_in_eager(later: int) -> None:
    written, copied = torch.zeros(3), torch.zeros(3)
    writes = [MutatedInput(0, 0, False, 3), MutatedInput(1, 1, False, 2)]
    WriteBack(writes, later)([written, copied], [written, torch.ones(3)])
    assert [written._version, copied._version] == [3 - later, 2 - later]
    assert copied.tolist() == [1, 1, 1]


def test_a_graph_may_write_inputs_itself(library: Any) -> None:
    def step(weight: torch.Tensor, gradient: torch.Tensor, momentum: torch.Tensor) -> torch.Tensor:
        momentum.mul_(0.9).add_(gradient)
        weight.sub_(momentum)
        return momentum.sum()

    found = []
    for run in (step, aot_function(step, operators=library, forward_compiler=writing_itself)):
        tensors = [torch.linspace(0, 1, 4), torch.ones(4), torch.ones(4)]
        found.append([run(*tensors), run(*tensors), *tensors])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)


def test_writes_that_autograd_follows(library: Any) -> None:
    def function(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        x.mul_(w)
        return x.exp()

    found = []
    for run in (function, aot_function(function, operators=library, forward_compiler=writing_itself)):
        x, w = torch.linspace(0, 1, 4, dtype=torch.float64), torch.ones(4, dtype=torch.float64) * 2
        w.requires_grad_()
        result = run(x, w)
        found.append((result, x, *torch.autograd.grad(result.sum() + x.sum(), w)))
        assert x.requires_grad
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)


def test_what_eager_saved_before_is_found_changed(library: Any) -> None:
    run = aot_function(lambda x: x.add_(1), operators=library, forward_compiler=writing_itself)
    w, x = torch.ones(3, requires_grad=True), torch.ones(3)
    product = w * x
    run(x)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.sum().backward()


def _through_data(p: torch.Tensor) -> None:
    p.data.add_(1)


def _detached(p: torch.Tensor) -> None:
    p.detach().add_(1)


def _through_both(p: torch.Tensor) -> None:
    p.data.add_(1)
    p.detach()[1:].add_(1)


def _without_gradients(p: torch.Tensor) -> None:
    with torch.no_grad():
        p.add_(1)


@pytest.mark.parametrize("function", [_through_data, _detached, _through_both, _without_gradients])
@pytest.mark.parametrize("itself", [True, False])
@pytest.mark.parametrize("requires_grad", [True, False])
def test_a_write_to_data_has_a_version_of_its_own(
    library: Any, function: Any, itself: bool, requires_grad: bool
) -> None:
    run = aot_function(
        function, operators=library, forward_compiler=writing_itself if itself else (lambda graph: graph)
    )
    found = []
    for call in (function, run):
        p = torch.ones(3, requires_grad=requires_grad)
        call(p)
        found.append((p._version > 0, p.tolist()))
    assert found[0] == found[1]


def test_many_copies_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a GPU: those whose memory is their own together, by dtype, those whose memory is shared in turn."""
    together: list[int] = []
    copied = torch._foreach_copy_

    def foreach(targets: Any, contents: Any) -> Any:
        together.append(len(targets))
        return copied(targets, contents)

    monkeypatch.setattr(torch, "_foreach_copy_", foreach)
    monkeypatch.setattr(torch.Tensor, "is_cuda", property(lambda tensor: True), raising=False)
    writes = [MutatedInput(i, i, False) for i in range(5)]
    inputs = [torch.zeros(2) for _ in range(3)] + [torch.zeros(2, dtype=torch.int64) for _ in range(2)]
    results = [torch.full_like(x, i + 1) for i, x in enumerate(inputs)]
    WriteBack(writes)(inputs, results)
    assert sorted(together) == [2, 3]
    assert [x[1].item() for x in inputs] == [1, 2, 3, 4, 5]
    assert [x._version for x in inputs] == [1] * 5
    base = torch.arange(10.0)
    shared = [base[i : i + 2] for i in range(0, 10, 2)]
    WriteBack(writes)(shared, [base[0:2], base[0:2] + 1, base[2:4], base[2:4], base[8:10]])
    assert sorted(together) == [2, 3]
    assert base.tolist() == [0, 1, 1, 2, 1, 2, 1, 2, 8, 9]


def test_a_tensor_of_inference_mode_is_written_to_outside_of_it() -> None:
    with torch.inference_mode():
        target = torch.ones(2)
    WriteBack([MutatedInput(0, 0, False)])([target], [torch.full((2,), 2.0)])
    assert target.tolist() == [2, 2]


def counting(graph: Any) -> Any:
    """A compiler whose kernels count a write to what they make, as ``addmm`` with ``out=`` does."""

    def run(*inputs: Any) -> Any:
        results = tuple(graph(*inputs))
        torch.autograd.graph.increment_version(
            [r for r in results if isinstance(r, torch.Tensor) and all(r is not x for x in inputs)]
        )
        return results

    return run


def test_results_have_no_writes_of_kernels(library: Any) -> None:
    """Then an earlier function that makes them again knows them, for a second derivative."""

    def first(x: torch.Tensor) -> Any:
        made = x.sin()
        return made.mul_(2), x.exp()

    functions: list[Any] = [first, torch.tanh]
    found = []
    for wrap in (
        lambda f: f,
        lambda f: aot_function(f, operators=library, forward_compiler=counting),
    ):
        made, then = map(wrap, functions)
        for _ in range(2):
            x = torch.linspace(0, 1, 3).requires_grad_()
            middle, other = made(x)
            versions = middle._version, other._version
            result = then(middle)
            del middle
            (gradient,) = torch.autograd.grad(result.sum(), x, create_graph=True)
            found.append((versions, gradient.tolist(), torch.autograd.grad(gradient.sum(), x)[0].tolist()))
    assert found[2:] == found[:2]
