"""What programs do with torch beyond plain operations: factories, random numbers, transforms, hooks, dtypes, text."""

import contextlib
import subprocess
import sys

import numpy
import pytest
import torch
from torch.utils import _pytree as pytree

from dynamo_capture import optimize

X = torch.arange(6.0).reshape(2, 3) + 1


def given():
    return X.clone().requires_grad_()


def test_unused_random_numbers_are_drawn(whole):
    def f(x):
        torch.ops.aten.rand([2])
        torch.nn.functional.rrelu(x, training=True)
        x.clone().uniform_()
        torch.rand_like(x)
        return x + torch.rand(())

    whole(f, (X,), (X,))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.int64, torch.bool])
def test_legacy_classes_of_tensors(whole, dtype):
    kinds = (
        torch.DoubleTensor,
        torch.FloatTensor,
        torch.LongTensor,
        torch.cuda.FloatTensor,
        torch.sparse.FloatTensor,
    )

    def f(x):
        y = x.repeat(2)
        asked = [isinstance(y, kind) for kind in kinds], isinstance(y, (torch.FloatTensor, torch.BoolTensor))
        return y, asked, isinstance(y, torch.Tensor), y.type(), isinstance(x, torch.DoubleTensor)

    whole(f, (torch.ones(3).to(dtype),))


def test_legacy_classes_called_with_nothing(whole):
    def f(x):
        return torch.Tensor(), torch.LongTensor(), type(x)(), torch.Tensor(2, 0), x + 1

    whole(f, (X,))


def test_profiler_and_null_contexts(whole):
    def f(x):
        with torch.profiler.record_function("block"), torch.autograd.profiler.record_function("inner"):
            y = x * 2
        with contextlib.nullcontext():
            return y + 1

    whole(f, (X,), (X + 1,))


mul = torch.full((3,), 5.0)


def test_an_input_named_like_an_operation(whole):
    whole(lambda x: x * 2 + mul - x * mul, (X,), (X + 1,))


def test_func_grad(same):
    def loss(x):
        return (x**2).sum()

    same(lambda x: torch.func.grad(loss)(x) + x, (X,), (X + 1,))


def test_func_vmap(same):
    same(lambda x: torch.func.vmap(lambda row: row.sum() * row)(x) + 1, (X,), (X + 1,))


def test_func_jacrev_and_hessian(same):
    same(lambda x: torch.func.jacrev(torch.sin)(x), (X[0],), (X[1],))


def test_func_functional_call(same):
    net = torch.nn.Linear(3, 2)

    def f(x, w):
        return torch.func.functional_call(net, {"weight": w, "bias": torch.zeros(2)}, (x,))

    same(f, (X, torch.ones(2, 3)), (X, torch.zeros(2, 3)))


def test_cond(same):
    def f(x):
        return torch.cond(x.sum() > 20, lambda x: x * 2, lambda x: x - 1, (x,))

    same(f, (X,), (-X,))


def test_numpy_on_tensors(same):
    def f(x):
        a = x.numpy()
        b = numpy.sin(a) + 1
        return torch.from_numpy(b) + x, a.shape, float(numpy.mean(a))

    same(f, (X,), (X + 1,))


def test_numpy_scalars_and_arrays_as_arguments(same):
    same(
        lambda x, a, s: (x * float(s), torch.as_tensor(a) + x, a.shape, a.sum() + s),
        (X, numpy.ones((2, 3), dtype=numpy.float32), numpy.float32(2)),
        (X, numpy.zeros((2, 3), dtype=numpy.float32), numpy.float32(3)),
    )


def test_pytrees(same):
    def f(tree):
        leaves, spec = pytree.tree_flatten(tree)
        doubled = pytree.tree_map(lambda t: t * 2, tree)
        return pytree.tree_unflatten([leaf + 1 for leaf in leaves], spec), doubled, len(leaves)

    same(f, ({"a": X, "b": [X, (X + 1,)]},), ({"a": X, "b": [X, (X + 1,)]},), ([X],))


def test_shapes_dtypes_and_devices(whole):
    def f(x, dtype):
        y = x.to(dtype)
        return (
            y, y.dtype, y.device, y.device.type, x.shape, x.size(0), x.stride(), x.is_contiguous(), x.element_size(),
            x.shape == torch.Size([2, 3]), x.shape[1:], list(x.shape), x.numel(), torch.finfo(torch.float16).max,
            torch.iinfo(torch.int8).min, dtype.is_floating_point, torch.float32 == dtype, str(dtype), x.is_floating_point(),
            torch.promote_types(dtype, torch.int32), x.layout, x.is_sparse, torch.is_tensor(x), x.ndim, x.T.shape,
        )  # fmt: skip

    whole(f, (X, torch.float64), (X, torch.int32), (X, torch.float32))


def test_size_arithmetic(whole):
    def f(x):
        b, n = x.shape
        h = n // 3
        y = x.view(b, 3, h).transpose(1, 2).reshape(b * h, 3)
        return (
            y,
            x.new_zeros(b, h + 1),
            x.shape[:-1] + (1,),
            torch.Size((b, n)),
            (*x.shape, 2),
            max(b, n),
            b * n == x.numel(),
        )

    whole(f, (X,), (torch.ones(4, 6),), (torch.ones(5, 9),))


def test_generators_of_random_numbers(same):
    def f(x):
        g = torch.Generator().manual_seed(3)
        return x + torch.rand(2, 3, generator=g), torch.randn(2), torch.randperm(4)

    same(f, (X,), (X,))


def test_random_state_moves_on(whole):
    def f(x):
        return (
            x * torch.rand(()),
            torch.randint(0, 10, (3,)),
            torch.nn.functional.dropout(x),
            torch.bernoulli(x / 10),
        )

    whole(f, (X,), (X,))


def test_python_random(same):
    import random

    same(lambda x: (x * random.random(), random.randint(0, 9), random.choice([1, 2, 3])), (X,), (X,))


def test_tensor_methods_by_name(whole):
    whole(lambda x, name: getattr(x, name)() + getattr(torch, name)(x), (X, "sin"), (X, "exp"), (X, "neg"))


def test_requires_grad_inside(whole):
    def f(x):
        y = x.detach().clone()
        y.requires_grad_(True)
        return y * 2, y.requires_grad, y.is_leaf

    whole(f, (X,), (given(),))


def test_backward_inside(same):
    def f(x):
        w = x.detach().clone().requires_grad_()
        loss = (w**2).sum()
        loss.backward()
        return w.grad * 2

    same(f, (X,), (X + 1,))


def test_autograd_grad_inside(same):
    def f(x):
        (g,) = torch.autograd.grad((x**3).sum(), x)
        return g + 1

    same(f, (given(),), (given(),))


def test_hooks_on_tensors(same):
    def f(x):
        y = x * 2
        y.register_hook(lambda g: g * 10)
        return y.sum()

    same(f, (given(),), (given(),))


def test_where_masks_and_indexing(whole):
    def f(x, m):
        return (
            torch.where(m, x, -x), x.masked_fill(m, 0), torch.gather(x, 1, torch.zeros(2, 1, dtype=torch.long)),
            x.index_select(0, torch.tensor([1])), x.scatter(1, torch.tensor([[0], [1]]), 9.0), torch.einsum("ij,kj->ik", x, x),
            x.topk(2).indices, x.sort(descending=True)[0], x.argmax(-1), x.cumsum(1), torch.tril(x), x.flip(0), x.roll(1, 1),
        )  # fmt: skip

    whole(f, (X, X > 3), (X + 1, X < 3))


def test_split_chunk_and_unbind(whole):
    def f(x):
        a, b, c = x.split(1, dim=1)
        d, e = x.chunk(2)
        rows = x.unbind(0)
        return (
            a + b + c,
            d - e,
            sum(rows),
            [r.sum() for r in x],
            torch.stack(torch.unbind(x, 1)),
            len(x),
            max(map(len, x)),
        )

    whole(f, (X,), (X + 1,))


def test_complex_and_boolean_tensors(whole):
    def f(x):
        z = torch.complex(x, x + 1)
        m = (x > 2) & (x < 5) | ~(x > 1)
        return z.real, z.imag, z.abs(), torch.view_as_real(z), m, m.sum(), m.any(), m.to(torch.int8)

    whole(f, (X,), (X - 3,))


def test_data_dependent_values(same):
    def f(x):
        n = int(x.sum().item())
        picked = x[x > 2]
        return picked * n, picked.shape[0], torch.nonzero(x > 4), x.tolist(), x.max().item() if n > 3 else 0

    same(f, (X,), (X + 1,))


def test_default_dtype_is_guarded():
    from dynamo_capture import optimize

    fast = optimize(lambda gm, ex: gm.forward)(lambda: torch.ones(2))
    try:
        for dtype in (torch.float32, torch.float64, torch.float32):
            torch.set_default_dtype(dtype)
            assert fast().dtype is dtype
    finally:
        torch.set_default_dtype(torch.float32)


def test_foreach_and_optimizer_like_updates(same):
    def f(params, grads):
        with torch.no_grad():
            torch._foreach_mul_(params, 0.9)
            torch._foreach_add_(params, grads, alpha=-0.1)
        return [p.sum() for p in params]

    same(f, ([X, X + 1], [X, X]), ([X * 2, X], [X, X]))


def test_tensor_constructors_from_values(whole):
    def f(x, n):
        return (
            torch.tensor([n, 2.5]), torch.tensor([[1, n]], dtype=torch.float64), torch.full((2, n), 7), torch.arange(n) + 1,
            torch.zeros(x.shape), torch.ones(*x.shape, dtype=torch.bool), torch.linspace(0, 1, n), x.new_tensor([1.0, n]),
            torch.as_tensor([1, 2]), torch.empty(0), torch.eye(n), torch.cat([x, torch.zeros(n, 3)]), torch.scalar_tensor(2.0),
        )  # fmt: skip

    whole(f, (X, 2), (X, 3), (X, 4))


@pytest.mark.parametrize("reverse", [False, True])
def test_associative_scan(whole, reverse):
    from torch._higher_order_ops.associative_scan import associative_scan

    def combine(left, right):
        return {"a": left["a"] * right["a"], "b": right["a"] * left["b"] + right["b"]}

    def f(x):
        return associative_scan(
            combine, {"a": x, "b": x + 1}, dim=-1, reverse=reverse, combine_mode="generic"
        )

    whole(f, (torch.arange(12.0).reshape(3, 4) / 10,))


def test_mode_objects_that_were_never_initialized(same):
    half_made = [cls.__new__(cls) for cls in (torch.inference_mode, torch.autocast)]

    def f(x):
        return x * 2, [type(mode).__name__ for mode in half_made]

    same(f, (X,), (X + 1,))


def test_check_of_content(whole):
    def f(x):
        count = (x > 2).sum()
        message = f"{count} of {x.numel()}: {x[0]!r} {count!s}"
        torch._check_tensor_all(x > 0, lambda: message)
        return x * 2, message

    whole(f, (X,), (X - 3,), (X + 1,))


def test_check_of_content_comes_before_what_is_written(same):
    def f(x, items):
        items.append(1)
        torch._check_tensor_all_with(ValueError, x > 0, lambda: "too small")
        x += 1
        items.append(2)
        return x * 2

    same(f, (X.clone(), []), (X - 3, []), (X + 1, []))


def test_text_of_tensors_is_not_compared(same):
    def f(x):
        text = f"<{x[0, 0]}>"
        y = x * 2
        x[0, 0] = 9
        return text == "<1.0>", {text: y}, len(text), text + "!", text

    same(f, (X.clone(),), (X + 3,))


def test_classes_of_numbers_as_dtypes(whole):
    def f(x):
        made = (
            torch.ones(2, 3, dtype=bool),
            torch.zeros(2, dtype=complex).real,
            torch.tensor([1, 2], dtype=float),
        )
        return made, x.to(float), x.to(dtype=int), x.sum(dtype=float), torch.full_like(x, 1, dtype=float)

    whole(f, (torch.ones(3),), (torch.ones(3) * 2,))


def test_factories(same):
    def f(x):
        return (
            torch.zeros(2, 3) + x, torch.ones_like(x), torch.arange(3), torch.full((2,), 3.0), torch.tensor([1, 2]),
            x.new_zeros(4), torch.empty(0), torch.eye(2), torch.linspace(0, 1, 3), torch.tensor(3.0) * x,
        )  # fmt: skip

    same(f, (X,))


def test_random_numbers(same, forward):
    def f(x):
        return x + torch.rand(2, 3), torch.nn.functional.dropout(x, 0.5)

    fast = optimize(forward)(f)
    torch.manual_seed(3)
    expected = f(X)
    torch.manual_seed(3)
    actual = fast(X)
    assert all(torch.equal(a, b) for a, b in zip(expected, actual, strict=True))


def test_dtype_device_and_shape_guards(same):
    same(
        lambda x: x * 2 if x.dtype is torch.float32 else x * 3,
        (X,), (X.double(),), (X.int(),), (X[0],), (X.T,), (X.clone().requires_grad_(),), (X,),
    )  # fmt: skip


def test_parameter_and_tensor_differ(same):
    same(lambda x: (x * 2, isinstance(x, torch.nn.Parameter)), (X,), (torch.nn.Parameter(X.clone()),), (X,))


def test_whether_a_model_is_exported_to_onnx(whole):
    whole(lambda x: x + 1 if torch.onnx.is_in_onnx_export() else x - 1, (torch.ones(3),))


def test_onnx_is_not_imported_unasked():
    code = "import sys, dynamo_capture.driver.optimizer; sys.exit('torch.onnx' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("how", ["returned", "asked", "dropped"])
def test_hooks_are_registered_in_the_programs_order(how):
    def first(grad):
        return grad + 1

    def second(grad):
        return grad * 2

    def f(x):
        x.register_hook(first)
        handle = x.register_hook(second)
        y = x * 3
        if how == "asked":
            assert handle.id is not None
        return (y, handle) if how == "returned" else (y,)

    for function in (f, optimize(lambda graph, inputs: graph.forward)(f)):
        x = torch.ones(2, requires_grad=True)
        made = function(x)
        made[0].sum().backward()
        assert x.grad.tolist() == [8.0, 8.0]
