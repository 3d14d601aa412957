"""What programs do with torch beyond plain operations: modes, transforms, own operators, subclasses."""

import contextlib

import numpy
import pytest
import torch
from torch.utils import _pytree as pytree

X = torch.arange(6.0).reshape(2, 3) + 1


def given():
    return X.clone().requires_grad_()


def test_grad_modes_nest(whole):
    def f(x):
        with torch.no_grad():
            a = x * 2
            with torch.enable_grad():
                b = x * 3
            c = x * 4
            with torch.set_grad_enabled(True):
                d = x * 5
            e = x * 6
        return a, b, c, d, e, x * 7, torch.is_grad_enabled()

    whole(f, (given(),), (X,))


def test_grad_mode_is_restored_after_an_exception(whole):
    def f(x, n):
        try:
            with torch.no_grad():
                if n:
                    raise ValueError
        except ValueError:
            pass
        return x * 2, torch.is_grad_enabled()

    whole(f, (given(), 0), (given(), 1))


def test_exception_leaves_a_grad_mode(whole):
    def f(x, n):
        with torch.no_grad():
            y = x * 2
            if n:
                raise ValueError(n)
        return y

    whole(f, (given(), 0), (given(), 1))


def test_no_grad_as_decorator_of_functions_and_methods(whole):
    class Model:
        @torch.no_grad()
        def frozen(self, x):
            return x * 2

    @torch.enable_grad()
    def live(x):
        return x * 3

    def f(x):
        with torch.no_grad():
            y = live(x)
        return Model().frozen(x), y

    whole(f, (given(),))


def test_no_grad_manager_is_reused(whole):
    def f(x):
        mode = torch.no_grad()
        with mode:
            a = x * 2
        with mode:
            b = x * 3
        return a, b, x * 4

    whole(f, (given(),))


def test_inside_inference_mode():
    from dynamo_capture import optimize

    def f(x):
        return x * 2

    fast = optimize(lambda gm, ex: gm.forward)(f)
    assert not fast(X).is_inference()
    with torch.inference_mode():
        assert fast(X).is_inference()
    assert not fast(X).is_inference()


def test_autocast(whole):
    def f(x, y):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            a = x @ y
            with torch.autocast("cpu", enabled=False):
                b = x @ y
            c = torch.nn.functional.linear(x, y)
        return a, b, c, x @ y, a.dtype

    whole(
        f,
        (X, X.T.contiguous()) if False else (torch.ones(3, 3), torch.eye(3)),
        (torch.eye(3), torch.ones(3, 3)),
    )


def test_modes_after_an_operator_that_fails(same):
    def f(x, i):
        with torch.autocast("cpu", dtype=torch.bfloat16), torch.no_grad():
            y = (x @ x.T).float()[:, i]
        return y, x @ x.T

    def g(x, i):
        try:
            return f(x, i)
        except IndexError:
            return torch.is_autocast_enabled("cpu"), torch.is_grad_enabled()

    for program in (f, g):
        same(program, (X, torch.tensor([0])), (X, torch.tensor([5])), (X, torch.tensor([1])))
        assert not torch.is_autocast_enabled("cpu")


def test_autocast_outside_is_guarded():
    from dynamo_capture import optimize

    fast = optimize(lambda gm, ex: gm.forward)(lambda x: x @ x)
    a = torch.ones(3, 3)
    assert fast(a).dtype is torch.float32
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert fast(a).dtype is torch.bfloat16
    assert fast(a).dtype is torch.float32


def test_in_place_by_position(whole):
    def f(x):
        y = x - 3
        torch.nn.functional.relu(y, True)
        torch.nn.functional.batch_norm(x, mean := torch.zeros(3), torch.ones(3), None, None, True)
        torch.ops.aten.add_.Tensor(y, 1)
        return y, mean

    whole(f, (X,), (X + 1,))


def test_unused_random_numbers_are_drawn(whole):
    def f(x):
        torch.ops.aten.rand([2])
        torch.nn.functional.rrelu(x, training=True)
        x.clone().uniform_()
        torch.rand_like(x)
        return x + torch.rand(())

    whole(f, (X,), (X,))


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


@torch.library.custom_op("capture_programs::triple", mutates_args=())
def triple(x: torch.Tensor) -> torch.Tensor:
    return x * 3


@triple.register_fake
def _(x):
    return torch.empty_like(x)


@torch.library.custom_op("capture_programs::bump", mutates_args=("x",))
def bump(x: torch.Tensor) -> None:
    x.add_(1)


def test_custom_operators(same):
    same(lambda x: (triple(x) + torch.ops.capture_programs.triple(x), triple(triple(x))), (X,), (X + 1,))


def test_custom_operator_that_mutates(same):
    def f(x):
        y = x * 2
        bump(y)
        bump(x)
        return y + x

    same(f, (X,), (X + 1,))


class Tagged(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        out = super().__torch_function__(func, types, args, kwargs or {})
        if func is torch.add or func is torch.Tensor.add:
            return out * 2
        return out

    def __deepcopy__(self, memo):
        return self.as_subclass(torch.Tensor).clone().as_subclass(Tagged)


def test_tensor_subclass_with_torch_function(same):
    same(lambda x: (x + 1, torch.add(x, 1), x * 2), (X.as_subclass(Tagged),), ((X + 1).as_subclass(Tagged),))


class Wrapped:
    """No tensor, but takes part in torch functions."""

    def __init__(self, t):
        self.t = t

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        plain = [a.t if isinstance(a, Wrapped) else a for a in args]
        return Wrapped(func(*plain, **(kwargs or {})))


def test_object_with_torch_function(same):
    same(lambda x: torch.sin(Wrapped(x)).t + torch.add(Wrapped(x), 1).t, (X,), (X + 1,))


def test_torch_function_mode_outside(same):
    from torch.overrides import TorchFunctionMode

    class Double(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            out = func(*args, **(kwargs or {}))
            return out * 2 if func is torch.sin else out

    def f(x):
        with Double():
            return torch.sin(x)

    same(f, (X,), (X,))


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


def test_in_place_on_inputs_and_views(whole):
    def f(x, y):
        x.add_(1)
        x[0].mul_(2)
        view = y.view(-1)
        view[1:3] = 0
        y.t()[0] = 5
        torch.add(x, y, out=x)
        return x is x.add_(0), view

    whole(f, (X, X + 1), (X * 2, X))


def test_in_place_on_a_leaf_under_no_grad(whole):
    def f(w, g):
        with torch.no_grad():
            w -= 0.1 * g
            w.mul_(2)
        return w * 3

    whole(f, (given(), X), (given(), X + 1))


def test_in_place_on_a_leaf_is_an_error(same):
    same(lambda w: w.add_(1), (given(),), (X,))


def test_tensor_attributes_are_set(same):
    def f(x):
        x.note = "seen"
        x.scale = 2
        return x * x.scale, x.note, hasattr(x, "other")

    same(f, (X,), (X,))


def test_tensor_methods_by_name(whole):
    whole(lambda x, name: getattr(x, name)() + getattr(torch, name)(x), (X, "sin"), (X, "exp"), (X, "neg"))


def test_data_and_detach(whole):
    def f(x):
        return x.data * 2, x.detach().requires_grad, x.clone().requires_grad, (x * 2).detach() + x

    whole(f, (given(),), (X,))


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
