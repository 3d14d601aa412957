"""Tensors that have metadata and no data, and the mode in which torch functions run on them.

Autograd and composite operators run above the mode as they always do; what reaches the mode is an ATen operator, whose
result's spec an ``OperatorLibrary`` gives. So torch itself answers every question about a result's metadata.
"""

from __future__ import annotations

import functools
import operator
import weakref
from collections.abc import Callable, Mapping
from typing import Any, Final

import torch
from torch._ops import OpOverload
from torch.nn import functional

from dynamo_capture.foundation.break_kinds import OUTSIDE_WORLD
from dynamo_capture.foundation.errors import TRACED_TENSOR, DataDependent, GraphBreak
from dynamo_capture.shapes.in_place import check_write
from dynamo_capture.shapes.irregular import (
    IRREGULAR,
    LEAVE_OPEN,
    follow,
    is_view,
    writes,
    written_argument,
    written_by,
)
from dynamo_capture.shapes.kernels import ask_kernel
from dynamo_capture.shapes.out_arguments import take_sizes
from fx_interface.composites import COMPOSITES
from fx_interface.errors import UnsupportedProgramError
from fx_interface.operator_facts.data_errors import may_fail
from fx_interface.operator_facts.functional_overloads import out_names
from fx_interface.operator_facts.kernel_warnings import warns
from fx_interface.operator_facts.random_draws import draws
from fx_interface.operator_facts.unknown_histories import has_unknown_history
from fx_interface.operators import OperatorLibrary
from fx_interface.symbols import Expr, ShapeEnv
from fx_interface.tensor_spec import SymFloatSpec, SymSpec, TensorSpec, located
from fx_interface.torch_internals.dispatch_mode import DispatchMode
from fx_interface.torch_symbols.sym_nodes import SizeTable


class SpecTensor(torch.Tensor):
    """A tensor without data; ``spec`` never says ``requires_grad``, which autograd keeps on the tensor itself.
    ``content``: what would be in it, where that is known; ``origin``: what it stands for, None within an operation."""

    __slots__ = ("content", "origin", "spec")
    spec: TensorSpec
    origin: object
    content: torch.Tensor | torch.SymInt | None

    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: OpOverload, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Reached only outside of an inference."""
        raise UnsupportedProgramError(TRACED_TENSOR, f"{func} ran on a tensor that belongs to a trace")


class Inference:
    """Runs torch functions on ``SpecTensor``s for one compilation. ``wrote`` and ``drew``: whether an operator of the
    last run changes its arguments, and whether one takes random numbers. ``written`` are the tensors that were
    changed, ``resized`` those that were given as ``out=`` and have other sizes since; ``memory`` gives for a view (by
    identity) the tensor that it was taken of; ``read`` are tensors whose known content was asked for; ``left_open``:
    whether memory without content was made; ``may_fail``: whether an operator was called that may raise because of
    what is in its tensors; ``by_data``: whether a result's size is one that only data can tell. ``counts``: how many
    elements of a tensor are not zero. ``apart``: takes the operators of a function in place of their inference.
    ``made``: takes the tensors that are made, where somebody asks for them.
    ``_keys``: the dispatch keys of the thread outside of operators.
    ``leaves_warnings``: an operator that warns in each call is Python's to run."""

    def __init__(
        self,
        library: OperatorLibrary,
        env: ShapeEnv,
        follows_data: bool = True,
        leaves_warnings: bool = False,
    ) -> None:
        self.follows_data = follows_data
        self.leaves_warnings = leaves_warnings
        self.library = library
        self.env = env
        self.sizes = SizeTable(env)
        self.wrote = False
        self.drew = False
        self.written: list[SpecTensor] = []
        self.resized: list[SpecTensor] = []
        self.memory: dict[int, tuple[SpecTensor, SpecTensor]] = {}
        self.left_open = False
        self.may_fail = False
        self.by_data = False
        self.counts: dict[object, Expr] = {}
        self.read: list[SpecTensor] = []
        self.made: list[weakref.ref[SpecTensor]] | None = None
        self._grown: TensorSpec | None = None
        self.apart: Callable[[OpOverload, tuple[Any, ...], Mapping[str, Any]], Any] | None = None
        self._keys: Any = None
        self._mode = _InferenceMode(self)

    def tensor(
        self, spec: TensorSpec, requires_grad: bool, is_leaf: bool, is_inference: bool = False
    ) -> SpecTensor:
        """A fresh tensor; one that requires grad and is no leaf gets a history."""
        if is_inference is not torch.is_inference_mode_enabled():
            with torch.inference_mode(is_inference):
                return self.tensor(spec, requires_grad, is_leaf, is_inference)
        if not requires_grad:
            return self._wrap(spec)
        made = self._wrap(spec, True)
        if is_leaf:
            return made
        self._grown = spec
        try:
            # In a __torch_dispatch__ autograd is left out, and yet some tensors have a history.
            with all_keys(), torch.enable_grad(), self._mode:
                grown: SpecTensor = torch.ops.aten.clone.default(made)
        finally:
            self._grown = None
        return grown

    def _wrap(self, spec: TensorSpec, requires_grad: bool = False) -> SpecTensor:
        made: SpecTensor = self.sizes.wrapper(SpecTensor, spec, requires_grad)
        made.spec = spec
        made.content = made.origin = None
        if self.made is not None:
            self.made.append(weakref.ref(made))
        return made

    def forget_run(self) -> None:
        """The last run's tensors are told about no more."""
        self.read = []
        self.written.clear()
        self.resized.clear()
        self.memory.clear()

    def run(self, function: Callable[..., Any], args: Any, kwargs: Mapping[str, Any]) -> Any:
        """``function(*args, **kwargs)`` with every operator's result inferred."""
        self.wrote = self.drew = self.left_open = self.by_data = self.may_fail = False
        self.forget_run()
        self._keys = torch._C._dispatch_tls_local_include_set(), torch._C._dispatch_tls_local_exclude_set()
        function = COMPOSITES.get(function, function)
        if not self.env.symbols or function in _PRODUCTS:
            with self._mode:
                return function(*args, **kwargs)
        with _python_dispatcher(), self._mode:
            return function(*args, **kwargs)

    def dispatch(self, func: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """What the mode does with one operator."""
        if self._grown is not None:  # a tensor gets a history, and keeps the layout that it has
            return self._wrap(self._grown)
        if self.apart is not None:
            return self.apart(func, args, kwargs)
        if _is_composite(func):  # reached where autograd is left out, as in inference mode
            with torch._C._ForceDispatchKeyGuard(*self._keys), self._mode:
                return func.decompose(*args, **kwargs)
        if self.leaves_warnings and warns(func, args, kwargs):
            raise GraphBreak(OUTSIDE_WORLD, f"{func} gives a warning")
        if writes(func, args):
            self.wrote = True
            self.written += written_by(func, args, kwargs)
        self.drew = self.drew or draws(func, args, kwargs)
        self.left_open = self.left_open or func in LEAVE_OPEN
        self.may_fail = self.may_fail or may_fail(func, args, kwargs)
        if args and type(args[0]) is list and not args[0] and _takes_tensors(func):
            ask_kernel(self, func, args, kwargs)
        rule = IRREGULAR.get(func)
        if rule is not None:
            answer = rule(self, func, args, kwargs)
            if answer is not NotImplemented:
                return answer
        made = (self._written if func._schema.is_mutable else self.infer)(func, args, kwargs)
        if has_unknown_history(func, (args, kwargs), made):
            raise UnsupportedProgramError(
                TRACED_TENSOR, f"{func} has no formula for autograd, which follows its kernel"
            )
        return made

    def _written(self, func: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """An operator that writes into its arguments, and returns those that its schema names, or new tensors."""
        for target, spec in take_sizes(self, func, args, kwargs):
            with torch._C._DisableTorchDispatch():
                target.data = self._wrap(spec)
            target.spec = spec
            self.resized.append(target)
        if not out_names(func):
            check_write(self, func, args, kwargs)
        for tensor in written_by(func, args, kwargs):
            if isinstance(tensor, SpecTensor):
                tensor.content = None
        declared = func._schema.returns
        if not declared:
            return None
        returned = [written_argument(func, result, args, kwargs) for result in declared]
        if any(found is None for found in returned):
            made = self.infer(func, args, kwargs)
            fresh = (made,) if len(declared) == 1 else made
            returned = [new if found is None else found for found, new in zip(returned, fresh, strict=True)]
        return returned[0] if len(declared) == 1 else tuple(returned)

    def infer(self, func: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """New tensors for an operator's results."""
        created = self.env.created
        spec = self.spec_of(func, args, kwargs)
        if self.env.created != created:
            follow(self, func)
        if is_view(func) and torch.is_inference_mode_enabled() is not args[0].is_inference():
            with torch.inference_mode(
                args[0].is_inference()
            ):  # a view is what its base is, whatever the mode
                made = self.results(func, spec)
        else:
            made = self.results(func, spec)
        if is_view(func):
            for view in (made,) if isinstance(made, SpecTensor) else made:
                self.memory[id(view)] = (view, args[0])
        return made

    def spec_of(self, func: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """The spec of an operator's result."""
        return self.library.infer(
            func, [self.plain(a) for a in args], {k: self.plain(v) for k, v in kwargs.items()}, self.env
        )

    def owner(self, tensor: SpecTensor) -> SpecTensor:
        """The tensor whose memory ``tensor`` shows, as far as the last run knows."""
        while (found := self.memory.get(id(tensor))) is not None:
            tensor = found[1]
        return tensor

    def results(self, func: OpOverload, spec: Any) -> Any:
        """Tensors for the specs of an operator's results."""
        if type(spec) is TensorSpec:
            return self._wrap(spec)
        if spec is None:
            return None
        if isinstance(spec, (tuple, list)):
            return type(spec)([self.results(func, part) for part in spec])
        if isinstance(spec, SymSpec):
            return self.sizes.to_torch(spec.expr)
        if isinstance(spec, SymFloatSpec):
            raise DataDependent(str(func))
        raise DataDependent(f"{func} returns {spec}")

    def plain(self, arg: Any) -> Any:
        """An argument as rules take it: specs of tensors, expressions of sizes."""
        kind = type(arg)
        if kind is SpecTensor:
            return arg.spec
        if kind is list or kind is tuple:
            return [self.plain(part) for part in arg]
        if kind is torch.device:
            return located(arg)
        if kind is torch.SymInt:
            return self.env.simplify(arg.node.value)
        if kind is torch.SymBool:
            return self.sizes.decide(arg.node.value)
        if isinstance(arg, torch.Tensor):
            return TensorSpec(tuple(arg.shape), tuple(arg.stride()), arg.dtype, arg.device)
        return arg


@functools.cache
def _is_composite(func: OpOverload) -> bool:
    """Whether ``func`` is made of other operators, which tell whether its result is a view, an argument or new; not if
    its own kernel makes views of what they give, as that of ``chunk`` does. TorchScript has operators without one."""
    name = func.name()  # type: ignore[no-untyped-call]
    if not torch._C._dispatch_has_kernel(name):
        return False
    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    return has_kernel(name, "CompositeImplicitAutograd") and not has_kernel(name, "ADInplaceOrView")


def all_keys() -> Any:
    """Nothing is left out of dispatch inside."""
    included: Any = torch._C._dispatch_tls_local_include_set()
    return torch._C._ForceDispatchKeyGuard(included, _NO_KEYS)


_NO_KEYS = torch._C.DispatchKeySet(torch._C.DispatchKey.Undefined)


_PRODUCTS: Final = frozenset(
    {
        operator.matmul, torch.matmul, torch.Tensor.matmul, torch.Tensor.__matmul__, torch.Tensor.__rmatmul__,
        torch.linalg.matmul, torch.einsum, torch.tensordot, torch.inner, functional.linear, functional.bilinear,
        functional.scaled_dot_product_attention, functional.multi_head_attention_forward,
    }
    if tuple(int(part) for part in torch.__version__.split(".")[:2]) >= (2, 13)
    else ()
)  # fmt: skip
"""Functions whose C++ code takes symbolic sizes. The Python dispatcher would lead to decompositions of torch's, which
load its symbolic shapes and sympy: half a second of a program's first call with such sizes."""


def _python_dispatcher() -> Any:
    from torch._dispatch.python import enable_python_dispatcher  # loads slowly; only symbolic sizes need it

    return enable_python_dispatcher()


class _InferenceMode(DispatchMode):
    def __init__(self, inference: Inference) -> None:
        super().__init__()
        self._inference = inference

    def dispatch(self, func: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        return self._inference.dispatch(func, args, kwargs)


def _takes_tensors(func: OpOverload) -> bool:
    """Whether an operator's first argument is a list of tensors: ``_foreach_sqrt([])``, not ``full([], 1)``."""
    return "Tensor" in str(func._schema.arguments[0].type)
