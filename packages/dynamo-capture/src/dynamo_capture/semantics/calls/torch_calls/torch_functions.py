"""Which functions of torch become nodes, and those that mean something to the translator itself."""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, Any

import torch

from dynamo_capture.foundation.errors import GraphBreak, NotConstant, UserRaise
from dynamo_capture.semantics.calls.library.arrays import tensor_of
from dynamo_capture.semantics.numbers.numbers import varies
from dynamo_capture.semantics.registry import HANDLERS, handles, pure
from dynamo_capture.semantics.tensors import gradients
from dynamo_capture.semantics.tensors.arguments import positions
from dynamo_capture.semantics.tensors.content.data_numbers import (
    are_close,
    are_equal,
    assume,
    state,
    truth_of,
)
from dynamo_capture.session.controls import is_compiling
from dynamo_capture.values import (
    FALSE,
    NONE,
    TRUE,
    Const,
    DictValue,
    ListValue,
    ObjectValue,
    SymValue,
    TensorValue,
    TupleValue,
    Value,
    boolean,
    is_none,
)
from dynamo_capture.values.numbers.condition import DataCondition
from dynamo_capture.values.structures import sequence_leaves
from dynamo_capture.values.tensors.floating import RuntimeFloat
from fx_interface.source import ImportedModuleSource, InstanceDictSource, ItemSource

if TYPE_CHECKING:
    from dynamo_capture.frames.frame import Frame
    from dynamo_capture.values.base import Context

_LEAF_MODULES = frozenset(
    {"torch.nn.functional", "torch.functional", "torch._tensor", "torch._linalg_utils", "torch._lowrank"}
)
_C_MODULES = (
    "torch._C._nn",
    "torch._C._fft",
    "torch._C._linalg",
    "torch._C._special",
    "torch._C._sparse",
    "torch._C._nested",
)


def is_leaf_function(function: types.FunctionType) -> bool:
    """Whether a Python function of torch is one operation of the graph."""
    name = function.__name__
    return function.__module__ in _LEAF_MODULES and not name.startswith(
        ("_get_", "_convert", "__torch_function__")
    )


def is_torch_builtin(function: Any) -> bool:
    """Whether a C function (or an operator of ``torch.ops``) is one operation of the graph."""
    if isinstance(function, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
        return True
    if not isinstance(function, types.BuiltinFunctionType):
        return False
    module = function.__module__
    if module is not None and module.startswith(_C_MODULES):
        return True
    return function.__qualname__.startswith("_VariableFunctionsClass.")


pure(
    torch._C._get_privateuse1_backend_name,
    torch.finfo,
    torch.iinfo,
    torch.device,
    torch.get_default_dtype,
    torch.promote_types,
    torch.result_type,
    torch.can_cast,
    torch.is_deterministic_algorithms_warn_only_enabled,
    torch.are_deterministic_algorithms_enabled,
    torch.get_num_threads,
    torch.is_autocast_enabled,
    torch.get_autocast_dtype,
    torch.is_inference_mode_enabled,
    torch.is_autocast_cache_enabled,
    torch.cuda.is_available,
    torch.backends.mps.is_available,
    torch._C._get_sdp_priority_order,
    torch._C._len_torch_dispatch_stack,
    torch._C._get_deterministic_algorithms,
    torch.cuda.is_current_stream_capturing,
    torch.get_default_device,
    torch._C._has_torch_function_unary,
)


def _constantly(value: Const) -> Any:
    def answer(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return value

    return answer


def _whether_compiling(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return boolean(not _runs_hooks_always(tx, tx.frames[-1]) and tx.asking.answer(tx.frames))


def _runs_hooks_always(tx: Context, frame: Frame) -> bool:
    """Whether a module with hooks for the case that it raises asks; told yes, it leaves them out. The hooks are read,
    and guarded, by the same frame."""
    if frame.code is not torch.nn.Module._call_impl.__code__:
        return False
    module = tx.force(frame.cell("self").content or NONE)
    if not isinstance(module, ObjectValue):
        return False
    from torch.nn.modules.module import _global_forward_hooks_always_called

    return bool(module.real._forward_hooks_always_called or _global_forward_hooks_always_called)


def _declare_states() -> None:
    handles(
        torch.jit.is_scripting,  # type: ignore[attr-defined]
        torch.jit.is_tracing,  # type: ignore[attr-defined]
        torch.compiler.is_exporting,
        torch._jit_internal.is_scripting,
    )(_constantly(FALSE))
    handles(torch._C._get_tracing_state)(_constantly(NONE))
    handles(torch.compiler.is_compiling, torch.compiler.is_dynamo_compiling, is_compiling)(_whether_compiling)


@handles(torch.is_grad_enabled)
def is_grad_enabled(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return boolean(torch.is_grad_enabled())


@handles(torch.is_tensor)
def is_tensor(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return HANDLERS[isinstance](tx, [args[0], Const(torch.Tensor)], {})


@handles(torch.numel)
def numel(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    if len(args) == 1 and not isinstance(args[0], TensorValue):
        return tx.tensors.call_function(torch.numel, args, kwargs)
    return args[0].call_method(tx, "numel", [], {})


@handles(torch._assert)
def assert_(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    if isinstance(args[0], TensorValue):
        condition = truth_of(tx, args[0]) if args[0].content is None and not tx.output.lasts else None
        if condition is None:
            raise GraphBreak("CAP201", "an assertion on a tensor reads its content")
        assume(tx, condition.relation)
        return NONE
    if not tx.truth(args[0]):
        raise tx.raises(AssertionError, args[1])
    return NONE


@handles(torch._check)
def check(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    if isinstance(args[0], TensorValue):
        raise GraphBreak("CAP201", "an assertion on a tensor reads its content")
    if isinstance(args[0], DataCondition):
        state(tx, args[0].relation, _message(tx, args))
        return NONE
    if not tx.truth(args[0]):
        message = (
            args[1].call(tx, [], {}) if len(args) > 1 else Const("Expected cond to be True, but got False.")
        )
        raise tx.raises(RuntimeError, message)
    return NONE


def _message(tx: Context, args: list[Value]) -> str:
    """What a failing check says, as far as the trace knows it."""
    try:
        said = tx.constant(args[1].call(tx, [], {})) if len(args) > 1 else None
    except (GraphBreak, UserRaise, NotConstant):
        said = None
    return said if isinstance(said, str) else "Expected cond to be True, but got False."


@handles(torch._check_is_size)
def check_is_size(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    condition = tx.operators.compare(">=", args[0], Const(0))
    return check(tx, [condition, *args[1:2]], {})


@handles(torch.equal)
def equal(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    known = are_equal(tx, args[0], args[1]) if len(args) == 2 and not kwargs else None
    return tx.tensors.call_function(torch.equal, args, kwargs) if known is None else known


@handles(torch.allclose)
def allclose(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    known = are_close(tx, args, kwargs)
    return tx.tensors.call_function(torch.allclose, args, kwargs) if known is None else known


@handles(torch.narrow)
def narrow(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    made = positions.narrow(tx, args, kwargs)
    return tx.tensors.call_function(torch.narrow, args, kwargs) if made is None else made


@handles(torch.tensor_split)
def tensor_split(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    made = positions.tensor_split(tx, args, kwargs)
    return tx.tensors.call_function(torch.tensor_split, args, kwargs) if made is None else made


@handles(torch.sym_int)
def sym_int(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return args[0] if isinstance(args[0], SymValue) else Const(int).call(tx, args, {})


@handles(torch.sym_max)
def sym_max(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return Const(max).call(tx, args, kwargs)


@handles(torch.sym_min)
def sym_min(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return Const(min).call(tx, args, kwargs)


@handles(torch._C._log_api_usage_once)
def log_api_usage(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return NONE


@handles(torch.manual_seed, torch.seed, torch.initial_seed, torch.set_rng_state, torch.get_rng_state)
def random_state(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    raise GraphBreak("CAP209", "the state of the random generator is read or set")


@handles(
    torch.save, torch.load, torch.set_default_dtype, torch.set_num_threads, torch.use_deterministic_algorithms
)
def global_state(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    raise GraphBreak("CAP237", "torch's global state or a file is changed")


def _make_tensor(function: Any) -> Any:
    def make(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if args and (varies(args[0]) or _has_varying(tx, args[0])):
            made_of_numbers = _tensor_of_numbers(tx, args[0], kwargs)
            if made_of_numbers is not None:
                return made_of_numbers
        of_numpy = tensor_of(tx, function, args[0], kwargs) if len(args) == 1 else None
        if of_numpy is not None:
            return of_numpy
        if args and _nested_tensor(tx, args[0]):
            if isinstance(args[0], TensorValue):
                return tx.tensors.call_function(function, args, kwargs)
            raise GraphBreak(
                "CAP201", f"torch.{function.__name__}() of a list of tensors reads their content"
            )
        return tx.tensors.call_function(function, args, kwargs)

    return make


def _has_varying(tx: Context, value: Value) -> bool:
    """Whether a value is a list or tuple of numbers of which one varies."""
    if not isinstance(value, (ListValue, TupleValue)):
        return False
    items = [tx.force(item) for item in value.items]
    return any(map(varies, items)) and all(varies(item) or isinstance(item, Const) for item in items)


def _tensor_of_numbers(tx: Context, value: Value, kwargs: dict[str, Value]) -> Value | None:
    """A tensor of a number, or of a list of numbers, known only when the code runs; None for other options."""
    given = {name: item for name, item in kwargs.items() if not is_none(item)}
    if not given.keys() <= {"dtype", "device"}:
        return None
    if isinstance(value, (ListValue, TupleValue)):
        items = [tx.force(item) for item in value.items]
        types = {item.python_type() for item in items}
        if not types <= {int, float, bool}:
            return None
        default = torch.get_default_dtype() if float in types else torch.int64
        options = {"dtype": Const(default), **given}
        make = Const(torch.tensor)
        return tx.tensors.call_function(
            torch.stack, [ListValue([make.call(tx, [item], options) for item in items])], {}
        )
    if isinstance(value, SymValue):
        dtype = given.pop("dtype", Const(torch.int64))
        return tx.tensors.call_function(torch.full, [Const(()), value], {"dtype": dtype, **given})
    assert isinstance(value, RuntimeFloat)
    options = {"dtype": Const(torch.get_default_dtype()), **given, "copy": TRUE}
    return value.tensor().call_method(tx, "to", [], options)


def _nested_tensor(tx: Context, value: Value) -> bool:
    return any(isinstance(item, TensorValue) for item in sequence_leaves(tx, [value]))


for _function in (torch.tensor, torch.as_tensor, torch.asarray):
    handles(_function)(_make_tensor(_function))


_LEGACY = {
    torch.Tensor: None, torch.FloatTensor: torch.float32, torch.DoubleTensor: torch.float64,
    torch.HalfTensor: torch.float16, torch.BFloat16Tensor: torch.bfloat16, torch.LongTensor: torch.int64,
    torch.IntTensor: torch.int32, torch.ShortTensor: torch.int16, torch.CharTensor: torch.int8,
    torch.ByteTensor: torch.uint8, torch.BoolTensor: torch.bool,
}  # fmt: skip
"""Classes that are called to make a tensor of one dtype (None: the default one) on the CPU."""


def _make_legacy(cls: Any) -> Any:
    def make(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """``torch.IntTensor([2, 3])`` has this content, ``torch.IntTensor(2, 3)`` this shape."""
        options: dict[str, Value] = {
            "dtype": Const(_LEGACY[cls] or torch.get_default_dtype()),
            "device": Const(torch.device("cpu")),
        }
        if not kwargs and len(args) == 1 and isinstance(args[0], (ListValue, TupleValue)):
            if args[0].python_type() is not torch.Size and not _nested_tensor(tx, args[0]):
                return tx.tensors.call_function(torch.tensor, args, options)
        elif not kwargs and all(value.python_type() is int for value in args):
            return tx.tensors.call_function(torch.empty, [TupleValue(args)], options)
        raise GraphBreak("CAP233", f"{cls.__name__} is called with something else than numbers")

    return make


for _class in _LEGACY:
    handles(_class)(_make_legacy(_class))


_NOT_ALL = "Expected cond to be True for all elements."


def _is_checkable(value: TensorValue) -> bool:
    return value.meta.spec.dtype is torch.bool and value.meta.spec.device.type == "cpu"


@handles(torch._check_tensor_all_with)
def check_tensor(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """Checked in the graph, where the frame can run again and raise what is due; on a GPU, where such a check ends the
    process, after the graph has run: then what the program writes to existing tensors from here on ends the graph."""
    checked = args[1] if len(args) > 1 else None
    if isinstance(checked, TensorValue) and _is_checkable(checked) and not tx.output.lasts:
        tx.output.assume("whether all elements are true")
        told = tx.tensors.call_method(checked, "all", [], {})
        return tx.tensors.call_function(torch._assert_async, [told, Const(_NOT_ALL)], {})
    tx.output.checks = True
    tx.effects.deferred(torch._check_tensor_all_with, args, kwargs)
    return NONE


@handles(torch.nn.Parameter)
def parameter(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    raise GraphBreak("CAP233", "a parameter is made")


handles(torch.autograd.grad)(gradients.grad)


@handles(torch.autograd.backward)
def backward(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    raise GraphBreak("CAP203", "the autograd engine is run inside the compiled function")


_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_GLOBAL_HOOKS = tuple(f"_global{name}" for name in _HOOKS)


def has_no_hooks(tx: Context, module: ObjectValue) -> bool:
    """Whether calling the module means calling ``forward``; guarded."""
    if module.real.__dict__.get("_compiled_call_impl") is not None:
        return False
    if module.attrs and any(name in module.attrs for name in _HOOKS):
        return False
    tables = [module.real.__dict__.get(name) for name in _HOOKS]
    if None in tables or any(_has_entries(tx, table) for table in (*tables, *_global_hooks())):
        return False
    if "__call__" not in module.reads:
        module.reads["__call__"] = NONE
        if module.source is not None:
            own = InstanceDictSource(module.source)
            for name, table in zip(_HOOKS, tables, strict=True):
                tx.guards.length(ItemSource(own, name), table)
            _guard_global_hooks(tx)
    return True


def _guard_global_hooks(tx: Context) -> None:
    """How many hooks are registered for all modules; once in a trace."""
    space = InstanceDictSource(ImportedModuleSource("torch.nn.modules.module"))
    if space in tx.guards.told:
        return
    tx.guards.told.add(space)
    for name, table in zip(_GLOBAL_HOOKS, _global_hooks(), strict=True):
        tx.guards.length(ItemSource(space, name), table)


def _global_hooks() -> list[Any]:
    from torch.nn.modules import module

    return [getattr(module, name) for name in _GLOBAL_HOOKS]


def _has_entries(tx: Context, table: Any) -> bool:
    """Whether a dictionary has entries at this point of the trace, which may have changed it."""
    known = tx.wrapping.value_of(table)
    if isinstance(known, DictValue) and known.is_changed:
        return bool(known.all_entries(tx))
    return bool(table)


_declare_states()
