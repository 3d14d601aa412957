"""Programs about classes and modes that take over torch's functions."""

# ruff: noqa: E501  # programs, as text
from __future__ import annotations

from random import Random

ATTRIBUTES = (
    "ndim", "shape", "dtype", "device", "requires_grad", "grad", "T", "mT", "data", "is_leaf", "layout", "is_cuda", "itemsize",
    "nbytes", "real", "is_sparse", "is_meta", "H", "grad_fn", "names", "is_quantized", "retains_grad", "output_nr", "_version", "name",
)  # fmt: skip
METHODS = (
    "dim()", "size()", "numel()", "stride()", "sum()", "sin()", "view(-1)", "unbind()", "t()", "clone()", "detach()", "item()",
    "is_contiguous()", "is_floating_point()", "element_size()", "tolist()", "max()", "reshape(-1)", "to(torch.float64)", "add_(1)",
    "new_zeros(2)", "size(0)", "mean(0)", "split(1)", "__len__()", "type()", "storage_offset()", "expand(2, *t.shape)", "abs().sqrt()",
)  # fmt: skip
CALLS = (
    "torch.sin(t)", "torch.add(t, 1)", "torch.stack([t, t])", "torch.cat((t, t))", "F.relu(t)", "F.softmax(t, -1)", "torch.equal(t, t)",
    "torch.is_tensor(t)", "torch.numel(t)", "torch.where(t > 1, t, 0.0)", "torch.zeros_like(t)", "torch.sum(t, 0)", "torch.split(t, 1)",
    "F.linear(t, t)", "torch.max(t, 0)", "torch.einsum('ij->ji', t)", "torch.broadcast_tensors(t, t)",
    "torch.Tensor.ndim.__get__(t)", "torch.Tensor.shape.__get__(t)", "torch.Tensor.T.__get__(t)", "torch.Tensor.add(t, 1)",
)  # fmt: skip
OTHERS = (
    "len(t)", "t + 1", "1 - t", "t * t", "t == 1", "-t", "t[0]", "t[:, 0]", "t @ t.T", "[v for v in t]", "isinstance(t, T)",
    "type(t).__name__", "t is t", "bool(t.sum() > 0)", "hasattr(t, 'foo')", "t > 1", "abs(t)", "round(t)", "float(t.sum())", "t.foo",
    "type(t.data).__name__", "callable(t)", "torch.overrides.is_tensor_like(t)", "(t * 2).ndim", "(t + 1).shape", "len(t * 2)",
    "2 ** t", "t // 2", "~(t > 1)", "1 in t", "t.sin().T.dtype", "divmod(t, 2)", "isinstance(t, torch.Tensor)",
)  # fmt: skip
STATEMENTS = (
    "t[0] = 5", "t += 1", "t.foo = 3", "t = t.as_subclass(torch.Tensor)", "t.requires_grad = True", "t.requires_grad_()", "del t.foo",
    "t = t.clone()", "t = t * 2", "t[0] += 1", "t = t.as_subclass(T)", "print(end='')",
)  # fmt: skip
BODIES = (
    "return super().__torch_function__(func, types, args, kwargs or {})",
    "LOG.append(name)\nreturn super().__torch_function__(func, types, args, kwargs or {})",
    "if name == '__get__':\n    return 42\nreturn super().__torch_function__(func, types, args, kwargs or {})",
    "if name in ('dim', '__len__', 'size', 'sin'):\n    return 7\nreturn super().__torch_function__(func, types, args, kwargs or {})",
    "with torch._C.DisableTorchFunctionSubclass():\n    return func(*args, **(kwargs or {}))",
    "if func is torch.sin or name == 'sin':\n    return torch.cos(*args)\nreturn super().__torch_function__(func, types, args, kwargs or {})",
    "plain = [a.as_subclass(torch.Tensor) if isinstance(a, T) else a for a in args]\nreturn func(*plain, **(kwargs or {}))",
    "LOG.append((name, len(args), sorted(kwargs or ()), [c.__name__ for c in types]))\nreturn super().__torch_function__(func, types, args, kwargs or {})",
    "if name == 'add':\n    raise ValueError('no addition')\nreturn super().__torch_function__(func, types, args, kwargs or {})",
    "if name == 'mul':\n    return NotImplemented\nreturn super().__torch_function__(func, types, args, kwargs or {})",
    "r = super().__torch_function__(func, types, args, kwargs or {})\nLOG.append(type(r).__name__)\nreturn r",
)  # fmt: skip
MODE_BODIES = (
    "return func(*args, **(kwargs or {}))",
    "LOG.append(name)\nreturn func(*args, **(kwargs or {}))",
    "if name == '__get__':\n    return 42\nreturn func(*args, **(kwargs or {}))",
    "if name in ('dim', '__len__', 'sin'):\n    return 7\nreturn func(*args, **(kwargs or {}))",
    "r = func(*args, **(kwargs or {}))\nLOG.append(type(r).__name__)\nreturn r",
)
FREE = {
    "property": "    @property\n    def foo(self):\n        return 'foo'",
    "method": "    def sin(self):\n        return 'own sin'",
    "len": "    def __len__(self):\n        return 13",
    "add": "    def __add__(self, other):\n        return 'own add'",
    "size": "    def size(self, *args):\n        LOG.append('size')\n        return super().size(*args)",
    "getattr": "    def __getattr__(self, name):\n        return 'by getattr ' + name",
    "class": "    foo = 9",
    "shape": "    @property\n    def shape(self):\n        LOG.append('shape')\n        return super().shape",
}


def tensor_program(random: Random) -> str:
    """The text after the prelude."""
    kind = random.choice(["class", "class", "class", "mode", "both", "wrapper", "plain"])
    parts = ["import torch.nn.functional as F"]
    parts.append(
        _class(random)
        if kind in ("class", "both")
        else _wrapper(random)
        if kind == "wrapper"
        else _plain(random)
    )
    if kind in ("mode", "both"):
        parts.append(_mode(random))
    body = [line for _ in range(random.randint(2, 5)) for line in _statement(random)]
    if kind in ("mode", "both"):
        body = ["with Mode():", *(f"    {line}" for line in body)]
    elif random.random() < 0.15:
        body = ["with torch._C.DisableTorchFunctionSubclass():", *(f"    {line}" for line in body)]
    made = (
        "T(torch.arange(2. * {n}).reshape(2, {n}))"
        if kind == "wrapper"
        else "torch.Tensor._make_subclass(T, torch.arange(2. * {n}).reshape(2, {n}))"
    )
    calls = ", ".join(
        f"lambda: ({made.format(n=n)},)" for n in random.choice([(2, 2, 2), (2, 3, 4), (1, 2, 2), (3, 1, 3)])
    )
    program = ["def program(t):", "    out = []", *(f"    {line}" for line in body), "    return out"]
    return "\n\n".join([*parts, "\n".join(program), f"CALLS = [{calls}]\nWATCHED = {{'log': LOG}}\n"])


def _function(body: str, first: str) -> str:
    lines = ["name = getattr(func, '__name__', str(func))", *body.split("\n")]
    head = f"    def __torch_function__({first}, func, types, args=(), kwargs=None):"
    return "\n".join([head, *(f"        {line}" for line in lines)])


def _class(random: Random) -> str:
    own = [FREE[name] for name in random.sample(sorted(FREE), random.choice([0, 0, 0, 1, 2]))]
    return "\n".join(
        ["class T(torch.Tensor):", "    @classmethod", _function(random.choice(BODIES), "cls"), *own]
    )


def _plain(random: Random) -> str:
    own = [FREE[name] for name in random.sample(sorted(FREE), random.choice([0, 1]))]
    return "\n".join(
        ["class T(torch.Tensor):", "    __torch_function__ = torch._C._disabled_torch_function_impl", *own]
    )


def _mode(random: Random) -> str:
    return "\n".join(
        ["class Mode(torch.overrides.TorchFunctionMode):", _function(random.choice(MODE_BODIES), "self")]
    )


def _wrapper(random: Random) -> str:
    again = random.choice(["T(r) if isinstance(r, torch.Tensor) else r", "r"])
    body = f"real = [a.inner if isinstance(a, T) else a for a in args]\nr = func(*real, **(kwargs or {{}}))\nLOG.append(name)\nreturn {again}"
    return "\n".join(
        [
            "class T:",
            "    def __init__(self, inner):\n        self.inner = inner",
            "    @classmethod",
            _function(body, "cls"),
        ]
    )


def _statement(random: Random) -> list[str]:
    draw = random.random()
    if draw < 0.2:
        lines = [random.choice(STATEMENTS)]
    else:
        texts = [
            f"t.{random.choice(ATTRIBUTES)}",
            f"t.{random.choice(METHODS)}",
            random.choice(CALLS),
            random.choice(OTHERS),
        ]
        lines = [f"out.append({random.choice(texts)})"]
    if random.random() < 0.6:
        return [
            "try:",
            *(f"    {line}" for line in lines),
            "except Exception as e:",
            "    out.append(told(e))",
        ]
    return lines
