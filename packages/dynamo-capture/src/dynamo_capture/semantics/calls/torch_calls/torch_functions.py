"""Functions of torch that mean something to the translator itself."""

from __future__ import annotations

from typing import Any

import torch

from dynamo_capture.foundation.break_kinds import (
    C_OBJECT_MADE,
    CONTENT_DECIDES,
    OBJECT_OPERATION,
    RANDOM_STATE,
    RUNS_AUTOGRAD,
    TORCH_STATE_CHANGED,
)
from dynamo_capture.foundation.errors import GraphBreak, NotConstant, UserRaise
from dynamo_capture.frames.frame import Frame
from dynamo_capture.polyfills.torch import encoders
from dynamo_capture.semantics.declared import handles_loaded
from dynamo_capture.semantics.registry import handles, pure
from dynamo_capture.semantics.tensors import gradients
from dynamo_capture.semantics.tensors.arguments import positions
from dynamo_capture.semantics.tensors.content.data_numbers import (
    are_close,
    are_equal,
    assume,
    state,
    truth_of,
)
from dynamo_capture.semantics.tensors.replaced_data import Replaced
from dynamo_capture.session.controls import is_compiling
from dynamo_capture.values import (
    FALSE,
    NONE,
    TRUE,
    CellValue,
    Const,
    FunctionValue,
    ObjectValue,
    TensorMeta,
    TensorValue,
    Value,
    boolean,
)
from dynamo_capture.values.base import Context
from dynamo_capture.values.numbers.condition import DataCondition
from fx_interface.python_runtime.own_builtins import PROGRAMS_ISINSTANCE
from fx_interface.tensor_spec import is_differentiable

pure(
    torch._C._get_privateuse1_backend_name,
    torch.finfo,
    torch.iinfo,
    torch.device,
    torch.promote_types,
    torch.result_type,
    torch.can_cast,
    torch.is_deterministic_algorithms_warn_only_enabled,
    torch.are_deterministic_algorithms_enabled,
    torch.get_num_threads,
    torch.is_autocast_enabled,
    torch._C._is_any_autocast_enabled,
    torch.is_inference_mode_enabled,
    torch.is_autocast_cache_enabled,
    torch.cuda.is_available,
    torch.backends.mps.is_available,
    torch._C._get_sdp_priority_order,
    torch._C._len_torch_dispatch_stack,
    torch._C._get_deterministic_algorithms,
    torch.cuda.is_current_stream_capturing,
    torch._C._has_torch_function_unary,
)


def _constantly(value: Const) -> Any:
    def answer(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return value

    return answer


_NAME_WHAT_THEY_MAKE = [
    transform.__code__ for transform in (torch.vmap, torch.func.grad, torch.func.grad_and_value)
]
"""They give what they make the names of the function that they are given, unless they are told that it is compiled."""


def _whether_compiling(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    frame, caller = tx.frames[-1], tx.frames[-2].code if len(tx.frames) > 1 else None
    told_no = (
        _runs_hooks_always(tx, frame)
        or encoders.is_told_no(frame.code, caller)
        or _names_what_it_makes(frame)
        or _checks_devices(tx, frame)
    )
    return boolean(not told_no and tx.asking.answer(tx.frames))


def _names_what_it_makes(frame: Frame) -> bool:
    """Whether a transform asks that would give what it makes the names of a function of the program."""
    if not any(frame.code is code for code in _NAME_WHAT_THEY_MAKE):
        return False
    given = frame.variables.get("func")
    return isinstance(given.content if isinstance(given, CellValue) else given, (FunctionValue, Const))


def _checks_devices(tx: Context, frame: Frame) -> bool:
    """Whether an optimizer asks that would check, with ``capturable=True``, on what devices its parameters are."""
    if not str(frame.globals.real.get("__name__")).startswith("torch.optim."):
        return False
    given = frame.variables.get("capturable", NONE)
    return tx.truth((given.content or NONE) if isinstance(given, CellValue) else given)


def _runs_hooks_always(tx: Context, frame: Frame) -> bool:
    """Whether a module with hooks for the case that it raises asks; told yes, it leaves them out. The hooks are read,
    and guarded, by the same frame."""
    if frame.code is not torch.nn.Module._call_impl.__code__:
        return False
    module = tx.force(frame.cell("self").content or NONE)
    if not isinstance(module, ObjectValue):
        return False
    from torch.nn.modules.module import _global_forward_hooks_always_called

    own = module.get_attr(tx, "_forward_hooks_always_called")
    return tx.truth(own) or bool(_global_forward_hooks_always_called)


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
    return Const(PROGRAMS_ISINSTANCE).call(tx, [args[0], Const(torch.Tensor)], {})


@handles(torch.numel, least=1)
def numel(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    if len(args) == 1 and not isinstance(args[0], TensorValue):
        return tx.tensors.call_function(torch.numel, args, kwargs)
    return args[0].call_method(tx, "numel", [], {})


@handles(torch._assert)
def assert_(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    if isinstance(args[0], TensorValue):
        condition = truth_of(tx, args[0]) if args[0].content is None and not tx.output.lasts else None
        if condition is None:
            raise GraphBreak(CONTENT_DECIDES, "an assertion on a tensor reads its content")
        for relation in condition.relations:
            assume(tx, relation)
        return NONE
    if not tx.tensors.disabled and tx.tensors.overriding(args[:1]):
        raise GraphBreak(OBJECT_OPERATION, f"{args[0].describe()} is asked for __torch_function__")
    if not tx.truth(args[0]):
        raise tx.raises(AssertionError, args[1])
    return NONE


@handles(torch._check)
def check(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    if isinstance(args[0], TensorValue):
        raise GraphBreak(CONTENT_DECIDES, "an assertion on a tensor reads its content")
    if isinstance(args[0], DataCondition):
        said = _message(tx, args)
        for relation in args[0].relations:
            state(tx, relation, said)
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
    return args[0] if args[0].expr is not None else Const(int).call(tx, args, {})


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
    raise GraphBreak(RANDOM_STATE, "the state of the random generator is read or set")


@handles(torch.save, torch.load, torch.set_num_threads)
def global_state(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    raise GraphBreak(TORCH_STATE_CHANGED, "torch's global state or a file is changed")


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
    """A leaf in the memory of a tensor; ``regions/new_data.py`` has what autograd follows of it."""
    data = args[0] if args else kwargs.get("data", NONE)
    given = args[1] if len(args) > 1 else kwargs.get("requires_grad", TRUE)
    if not isinstance(data, TensorValue) or data.meta.cls not in (torch.Tensor, torch.nn.Parameter):
        raise GraphBreak(C_OBJECT_MADE, "a parameter is made")
    trained = tx.truth(given)
    dtype = data.meta.spec.dtype
    if (trained and not is_differentiable(dtype)) or data.is_replaced:
        raise GraphBreak(C_OBJECT_MADE, "a parameter is made")
    with torch.no_grad(), tx.tensors.modes.without(len(tx.tensors.modes.active)):
        made = tx.tensors.call_method(data, "detach", [], {})
    assert isinstance(made, TensorValue)
    made.meta = TensorMeta.of(made.meta.spec, trained, True, torch.nn.Parameter, made.meta.is_inference)
    if trained:
        tx.output.unfollowed.add(made.node)
        if tx.policy.copies_leaves:
            writes = sum(one is data.memory for one in tx.output.overwritten)
            tx.tensors.replaced[id(made)] = Replaced(made, is_new=True, writes=writes)
    return made


handles(torch.autograd.grad)(gradients.grad)


@handles(torch.autograd.backward)
def backward(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    raise GraphBreak(RUNS_AUTOGRAD, "the autograd engine is run inside the compiled function")


_declare_states()


@handles_loaded("torch._higher_order_ops.invoke_subgraph", "invoke_subgraph_placeholder")
def nested_region(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """A function marked by ``torch.compiler.nested_compile_region``: torch before 2.13 compiles it by itself where it
    hears that it is compiled."""
    made: Value = args[0].call(tx, args[1:], kwargs)
    return made
