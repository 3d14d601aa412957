"""Specs of other people's operators: what they have registered to describe their results is run, never the operator.

@mylib.register_fake
def _(x): return torch.empty_like(x)    # runs on tensors without data, whose sizes may be symbolic
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch._library import custom_ops, fake_impl, simple_registry
from torch._ops import OpOverload

from fx_interface.errors import UnsupportedProgramError
from fx_interface.symbols import Expr, IntLike, ShapeEnv
from fx_interface.tensor_spec import SymSpec, TensorSpec, ValueSpec
from fx_interface.torch_internals.dispatch_mode import DispatchMode
from fx_interface.torch_symbols.sym_nodes import SizeTable

Infer = Callable[[OpOverload, Sequence[Any], Mapping[str, Any], ShapeEnv], ValueSpec]

_OF_TORCH = frozenset(
    {
        "aten",
        "prim",
        "prims",
        "aot_autograd",
        "fx_interface",
        "quantized",
        "mkldnn",
        "mkl",
        "profiler",
        "inductor",
    }
)


def is_foreign(op: OpOverload) -> bool:
    """Whether the operator is neither torch's own nor the stack's: its kernel may do anything."""
    return op.namespace not in _OF_TORCH and not op.namespace.startswith(("_", "torch", "quantized"))


def infer_by_fake(
    op: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any], env: ShapeEnv, infer: Infer
) -> ValueSpec:
    """The spec of a foreign operator's result, by its fake kernel, or its kernel for the device ``meta`` or for all.

    UnsupportedProgramError DEC106 where it has neither, DEC103 where it returns a number.
    """
    if not all(str(result.type) in _TENSORS for result in op._schema.returns):
        raise UnsupportedProgramError("DEC103", f"{op} returns what is no tensor", where=env.location)
    kernel = _kernel(op)
    for_all_devices = (
        kernel is None
        and op._schema.name not in custom_ops.OPDEFS  # whose kernel is so registered, and is never run
        and _has_kernel(op, "CompositeExplicitAutograd")
    )
    if for_all_devices:
        kernel = _by_key(op, torch._C.DispatchKey.CompositeExplicitAutograd)
    if kernel is None:
        raise _without_kernel(op, env)
    fakes = _Fakes(env, infer)
    ready = [fakes.tensor(arg) for arg in args]
    options = {name: fakes.tensor(arg) for name, arg in kwargs.items()}
    with torch.no_grad(), fake_impl.set_ctx_getter(lambda: _Context(fakes)), _python_dispatcher(), fakes:
        try:
            result = kernel(*ready, **options)
        except NotImplementedError:  # of torch, in place of a kernel for ``meta``
            raise _without_kernel(op, env) from None
        except Exception:
            if not for_all_devices:
                raise
            raise _without_kernel(
                op, env
            ) from None  # it asks for data, or it fails, which the program will be told
    return fakes.spec(op, result)


def _without_kernel(op: OpOverload, env: ShapeEnv) -> UnsupportedProgramError:
    return UnsupportedProgramError(
        "DEC106",
        f"{op} does not say what it returns",
        where=env.location,
        action="register a fake kernel (torch.library.register_fake)",
    )


_TENSORS = frozenset({"Tensor", "Optional[Tensor]", "List[Tensor]"})


def _kernel(op: OpOverload) -> Callable[..., Any] | None:
    name = op._schema.name
    defined = custom_ops.OPDEFS.get(name)
    if defined is not None and defined._abstract_fn is None:
        return None
    fake = simple_registry.singleton.find(name).fake_impl
    if fake.kernel is not None:
        found: Callable[..., Any] = fake.kernel
        return found
    if _has_kernel(op, "Meta"):
        return _by_key(op, torch._C.DispatchKey.Meta)
    return None


def _has_kernel(op: OpOverload, key: str) -> bool:
    name = op.name()  # type: ignore[no-untyped-call]
    return torch._C._dispatch_has_kernel_for_dispatch_key(name, key)


def _by_key(op: OpOverload, key: torch._C.DispatchKey) -> Callable[..., Any]:
    return lambda *args, **kwargs: op._op_dk(key, *args, **kwargs)


def _python_dispatcher() -> Any:
    from torch._dispatch.python import (
        enable_python_dispatcher,
    )  # loads slowly; only foreign operators need it

    return enable_python_dispatcher()


class _Described(torch.Tensor):
    """A tensor without data."""

    __slots__ = ("spec",)
    spec: TensorSpec

    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: OpOverload, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Reached only outside of a fake kernel."""
        raise UnsupportedProgramError("DEC106", f"{func} ran on a tensor without data")


class _Context:
    """What ``torch.library.get_ctx()`` gives a fake kernel."""

    def __init__(self, fakes: _Fakes) -> None:
        self._fakes = fakes

    def new_dynamic_size(self, *, min: int = 0, max: int | None = None) -> Any:
        """A size that only data can tell."""
        fakes = self._fakes
        return fakes.sizes.to_torch(fakes.env.create_symbol(None, low=min, high=max))

    create_unbacked_symint = new_dynamic_size


class _Fakes(DispatchMode):
    """Runs ATen operators on tensors without data."""

    def __init__(self, env: ShapeEnv, infer: Infer) -> None:
        super().__init__()
        self.env = env
        self.sizes = SizeTable(env)
        self._infer = infer

    def dispatch(self, func: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """The result of ``func``, described."""
        if func is torch.ops.aten.detach.default:
            return self.tensor(args[0].spec)
        if func._schema.is_mutable:
            return args[0]
        plain = {name: self._plain(arg) for name, arg in kwargs.items()}
        return self.tensor(self._infer(func, [self._plain(arg) for arg in args], plain, self.env))

    def tensor(self, value: Any) -> Any:
        """``value`` with tensors for specs, and torch's symbolic integers for ours."""
        match value:
            case TensorSpec():
                made: _Described = self.sizes.wrapper(_Described, value)
                made.spec = value
                return made
            case SymSpec():
                return self.sizes.to_torch(value.expr)
            case Expr():
                return self.sizes.to_torch(value)
            case list() | tuple():
                return type(value)([self.tensor(part) for part in value])
        return value

    def _plain(self, value: Any) -> Any:
        match value:
            case _Described():
                return value.spec
            case torch.SymInt():
                return self._size(value)
            case list() | tuple():
                return [self._plain(part) for part in value]
            case torch.Tensor():
                return TensorSpec(tuple(value.shape), tuple(value.stride()), value.dtype, value.device)
        return value

    def _size(self, value: torch.SymInt) -> IntLike:
        found: IntLike = self.env.simplify(value.node.value)
        return found

    def spec(self, op: OpOverload, result: Any) -> ValueSpec:
        """The spec of what a fake kernel has returned."""
        if isinstance(result, (list, tuple)):
            return type(result)([self.spec(op, part) for part in result])
        if result is None:
            return None
        if not isinstance(result, torch.Tensor) or result.layout is not torch.strided:
            raise UnsupportedProgramError(
                "DEC104", f"{op} returns {type(result).__name__}", where=self.env.location
            )
        found: TensorSpec = self._plain(result)
        return found
