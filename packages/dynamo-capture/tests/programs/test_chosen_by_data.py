"""``max`` and ``min`` of tensors by Python's builtins: data choose which object they give."""

from __future__ import annotations

import pytest
import torch

from dynamo_capture import optimize

A, B, C = torch.tensor([2.0]), torch.tensor([3.0]), torch.tensor([2.5])
ORDERS = [(A, B, C), (B, A, C), (C, B, A), (A, A.clone(), A.clone()), (A, torch.tensor([float("nan")]), B)]


class Box:
    """Something to keep tensors in."""

    def __init__(self):
        self.best = None


@pytest.mark.parametrize("extreme", [max, min])
def test_the_chosen_object_leaves_the_graph_as_itself(whole, extreme):
    def f(x, y, z):
        best = extreme(x, y, z)
        return best, [best, extreme((y, z))], best.shape, best.dtype

    whole(f, *ORDERS, graphs=1)


def test_what_is_made_inside_is_chosen_among(whole):
    def f(x, y, z):
        sums = [x.sum(), y.sum() * 2, (x * z).sum()]
        return max(sums) * 2 + x, min(sums, key=lambda one: -one), max(sums).item()

    whole(f, *ORDERS, graphs=1)


def test_a_chosen_tensor_is_an_operand_of_what_only_reads_it(whole):
    def f(x, y, z):
        best = max(x, y)
        kept = torch.stack([best, z]) - best + torch.sin(best)
        return kept.add_(best), best is None, -best, best > x, isinstance(best, torch.Tensor), best.dim()

    whole(f, *ORDERS, graphs=1)


def test_writes_to_what_was_chosen_among_are_seen(whole):
    def f(x, y, z):
        best = max(x, y)
        before = best * 1
        x.add_(10)
        y.mul_(3)
        return before, best * 1, best

    whole(f, *ORDERS, graphs=1)


def test_writes_to_the_chosen_one_reach_it(same):
    def f(x, y, z):
        best = max(x, y)
        w = x * 2
        best.add_(1)
        best += z
        return w, x, y, best

    same(f, *ORDERS)


def test_views_of_the_chosen_one_show_its_memory(same):
    def f(x, y, z):
        view = max(x, y).view(1, 1)
        view.mul_(5)
        return x, y, view, max(x, y)[0], max(x, y).detach()

    same(f, *ORDERS)


def test_what_asks_which_object_it_is_gets_the_answer(same):
    def f(x, y, z):
        best = max(x, y)
        return best is x, best is y, best is z, {id(x): 1}.get(id(best)), x * 2

    same(f, *ORDERS)


def test_the_gradient_goes_to_the_chosen_one_alone(same):
    def f(x, y, z):
        return max((x * 2).sum(), (y / 3).sqrt().sum(), z.sum())

    for x, y, z in ORDERS[:4]:
        leaves = [x.clone().requires_grad_(), y.clone().requires_grad_(), z.clone()]
        same(f, leaves, graphs=1)
        same(lambda x, y, z: (f(x, y, z) * x).exp(), leaves)
        fast = same.capture
        assert fast is not None


def test_without_gradients_leaves_are_operands(whole):
    def f(x, y):
        with torch.no_grad():
            return max(x, y) * 3

    leaf = B.clone().requires_grad_()
    whole(f, (A, leaf), (leaf, A), (B.clone() + 1, leaf))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_number_is_one_of_two(whole, dtype):
    def f(x, norm):
        scale = min(1.0, 0.7 / (norm + 1e-6))
        x.mul_(scale)
        return x * max(norm, 1e-3), x / max(2, norm), scale - x

    x = torch.arange(6.0, dtype=dtype) / 7
    norms = [torch.tensor(n, dtype=dtype) for n in (0.1, 0.7, 5.0, float("nan"), float("inf"))]
    whole(f, *[(x, n) for n in norms], graphs=1)


def test_a_tensor_is_held_between_numbers(whole):
    def f(x, y):
        inside = min(max(x.sum(), 0.25), 2)
        other = max(-1, min(1.5, y.sum()))
        return x * inside, max(inside, other) - min(other, inside) + y

    numbers = (-3.0, 0.0, 0.125, 1.0, 5.0)
    calls = [(torch.tensor([a, 0.0]), torch.tensor([b, 0.0])) for a in numbers for b in numbers]
    whole(f, *calls)


def test_a_number_beside_other_dtypes_is_not_made_a_tensor(same):
    def f(x, norm):
        return x * min(0.1, norm), torch.full((2,), 1.0).sum() + x.sum()

    for dtype in (torch.float16, torch.int64, torch.float64):
        x = torch.arange(6).to(dtype)
        same(f, (x, torch.tensor(0.01)), (x, torch.tensor(2.0)))


def test_forms_that_differ_are_chosen_and_not_computed_with(same):
    def f(x, y):
        best = max(x, y)
        return best * 2, best.shape

    same(f, (torch.tensor(1.0), torch.tensor([2.0])), (torch.tensor(3.0), torch.tensor([2.0])))
    same(f, (torch.tensor(1.0), torch.tensor(2)), (torch.tensor(3.0), torch.tensor(2)))


def test_several_elements_are_refused_as_in_python(same):
    def f(x, y):
        try:
            return max(x, y)
        except RuntimeError as error:
            return str(error), max(x, key=lambda row: row.sum())

    same(f, (torch.ones(2), torch.zeros(2)), (torch.ones(2, 2), torch.zeros(2, 2)))
    same(lambda x: max(x, x), (torch.ones(2),))


def test_a_key_of_data_chooses_among_objects(whole):
    def f(x, y, z, box):
        rows = [[x, "x"], [y, "y"], [z, "z"]]
        box.best = max(rows, key=lambda row: row[0])
        rows[0].append(1)
        return box.best, rows

    whole(f, *[(*order, Box()) for order in ORDERS], graphs=1)


def test_the_program_goes_on_with_what_was_chosen(same):
    def f(x, y, z):
        name = max([(x, torch.sin), (y, torch.cos)], key=lambda pair: pair[0])
        return name[1](z)

    same(f, *ORDERS)


def test_a_chosen_object_crosses_a_break(same, unknown):
    def f(x, y, z):
        best = min(x, y)
        unknown(z)
        return best * 2, best

    same(f, *ORDERS)


def test_in_a_comparison_of_a_chosen_tensor_decides(same):
    def f(x, y, z):
        return z + 1 if max(x, y) > z else z - 1

    same(f, *ORDERS)


def test_under_function_transforms_torch_decides(same):
    def batches(x, y):
        return torch.func.vmap(lambda a, b: max(a, b) * 2)(x, y)

    def gradients(x, y):
        return torch.func.grad(lambda a, b: (max(a, b) * a).sum(), argnums=(0, 1))(x, y)

    same(batches, (A, B))
    for x, y, _ in ORDERS[:4]:
        same(gradients, (x, y))


def test_in_a_backward_that_may_be_differentiated(same):
    class Larger(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            return max(x, y) * 1

        @staticmethod
        def backward(ctx, gradient):
            x, y = ctx.saved_tensors
            return gradient * max(x, y), gradient

    def f(x, y):
        return Larger.apply(x, y) * 2

    for x, y, _ in ORDERS[:4]:
        same(f, (x.clone().requires_grad_(), y.clone().requires_grad_()), (x, y))


NUMBERS = [torch.tensor(value) for value in (-2.0, 0.5, 3.0, float("nan"))]


def _kinds(result):
    return [(type(one), str(one)) for one in result]


@pytest.mark.parametrize(
    "program",
    [
        lambda x: [1 + max(0, x), max(0, x) * 2, min(x, 1.5) - 0.25, -1 - max(x, 0)],
        lambda x: [max(0, x) > 1, min(1, x) <= 0.5, max(max(0, x), x * 2) + 1],
        lambda x: [max(0, x) + max(0, 1 - x), max(0, x) * min(1, x), x + max(0, x)],
        lambda x: [sum(max(0, 1 - x * n) for n in (1, 2, -1)), max(2, max(0, x) - 1, 1 + max(0, x))],
        lambda x: [max(0, x) // 1] if x is None else [max(0.0, x) / 4, 1 + max(0, x) + x],
    ],
)
def test_a_number_or_a_tensor(program):
    compiled = optimize(lambda graph, _: graph.forward)(program)
    for x in NUMBERS:
        assert _kinds(compiled(x)) == _kinds(program(x))


def test_a_number_that_python_refuses():
    def program(x):
        return 1 / max(0, x)

    compiled = optimize(lambda graph, _: graph.forward)(program)
    assert torch.equal(compiled(NUMBERS[1]), program(NUMBERS[1]))
    with pytest.raises(ZeroDivisionError):
        compiled(NUMBERS[0])


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_the_gradient_goes_to_the_chosen_one(backend):
    fxstack = pytest.importorskip("fxstack")

    def program(xs, scale):
        best = xs[0].sqrt().sum()
        for x in xs[1:]:
            best = max(best, x.sqrt().sum())
        return best * scale + 1

    chosen = fxstack.compile(program, backend=backend, fullgraph=True)
    for first in (4.0, 0.0, 9.0):
        outcomes = []
        for function in (program, chosen):
            xs = [torch.full((2,), value, requires_grad=True) for value in (first, 0.0, 1.0)]
            result = function(xs, torch.tensor(3.0))
            result.backward()
            outcomes.append(([x.grad for x in xs], result.detach(), result.requires_grad))
        assert str(outcomes[0]) == str(outcomes[1])


def _gammas():
    for values in ((0.5, 2.0), (2.0, 0.5), (float("nan"), 1.0), (1.0, float("inf")), (0.7, 0.7)):
        first, second = map(torch.tensor, values)
        yield torch.arange(6.0).reshape(2, 3) - 2, first.reshape(1), second


def _factor_or_number(x, norm, other):
    scale = min(0.7 / norm, 1.0)
    return x.mul(scale), scale * x, x / scale, x < scale, scale


def _of_two_forms(x, norm, other):
    scale = max(norm, other)
    return x + scale, x.sub(scale), scale.sqrt(), scale


def _written_from_either(x, norm, other):
    norm.copy_(min(norm, other))
    x.mul_(max(norm * 2, other))
    x += min(norm, 1.5)
    x.sub_(min(other, 1))
    return norm, x


@pytest.mark.parametrize("program", [_factor_or_number, _written_from_either])
@pytest.mark.parametrize("order", [1, -1], ids=["", "backwards"])
def test_operations_on_a_tensor_or_a_number_of_one_element(same, program, order):
    same(program, *list(_gammas())[::order], graphs=1, breaks=0)
    with torch.no_grad():
        same(program, *list(_gammas())[::order], graphs=1, breaks=0)


@pytest.mark.parametrize("order", [1, -1], ids=["", "backwards"])
def test_results_of_two_forms_end_the_graph(same, order):
    same(_of_two_forms, *list(_gammas())[::order])


def test_operations_on_a_number_or_what_autograd_follows(same):
    calls = [(x, norm.requires_grad_(), other) for x, norm, other in _gammas()]
    same(_factor_or_number, *calls)


def test_integers_and_other_dtypes_beside_what_data_choose(same):
    def f(x, y, z):
        best = max(x, 2)
        return z * best, z.double() * best, z.long() * best, best + y, y.mul_(max(y, 3))

    calls = [(torch.tensor([n]), torch.tensor(n), torch.arange(3.0) / 7) for n in (1, 2, 3)]
    same(f, *calls)


def test_a_number_that_does_not_fit_is_refused_where_it_is_chosen(same):
    def f(x, y):
        y.mul_(max(x, y))
        return y

    same(f, *[(torch.tensor([a]), torch.tensor(b)) for a, b in ((1.0, 2.0), (2.0, 1.0), (1.0, 1.0))])
