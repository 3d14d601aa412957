"""The joint trace: the program's forward, then its backward through torch's engine, recorded as one list of values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any, Final

import torch

from aot_autograd.decompositions import NOTHING, Decompositions, decomposing
from aot_autograd.functionalization.calls import values_of
from aot_autograd.functionalization.functionalize import handle, handle_backward
from aot_autograd.functionalization.plain_formulas import dividing_single_factors
from aot_autograd.functionalization.symbolic_composites import symbolic_composites
from aot_autograd.joint.as_strided_bounds import check_reach, places_named
from aot_autograd.joint.backward_effects import without_writes
from aot_autograd.joint.gradient_layouts import in_layout_of, tangent_spec
from aot_autograd.joint.input_changes import forms_of, versions_of
from aot_autograd.plan import FormOfInput, MutatedInput, Region, Tangent, earlier_results
from aot_autograd.recording.ancestry import ancestry, partly_reached, saving_regions
from aot_autograd.recording.content_queries import OpenQuestion, Questions
from aot_autograd.recording.graphs import random_calls
from aot_autograd.recording.record import Recorder, is_random
from aot_autograd.recording.storage import Storage
from aot_autograd.recording.trace import Handler, Trace, TracedTensor, TraceMode
from aot_autograd.recording.values import Value
from aot_autograd.runtime.autocast import without_autocast, without_hooks
from aot_autograd.views.aliasing import Results, add_mutation, classify, separate, view_through
from fx_interface.errors import StackError, UnsupportedProgramError
from fx_interface.operators import OperatorLibrary
from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.signature import InputDecl, InputKind
from fx_interface.symbols import Expr, ShapeEnv
from fx_interface.tensor_spec import SymSpec, TensorSpec
from fx_interface.torch_internals.modes import restored

aten = torch.ops.aten

Program = Callable[[Recorder, Sequence[Any]], Sequence[Any]]
"""What is traced: called with the recorder (to say where in the user's code it is) and the inputs, returns results."""


_NO_DATA = "data is not allocated yet"
"""What torch says when a kernel asks a tensor without data for it."""


_SECOND_TIME: Final = "Trying to backward through the graph a second time"
"""How torch's engine begins to say that what a backward needs is gone."""


@dataclass(slots=True)
class Joint:
    """What was recorded. ``inputs`` holds a value for each tensor input, None for the others; ``own_random``: with
    random numbers that the table of decompositions makes; ``versions_of_inputs`` and ``placed`` are the plan's;
    ``between``, ``leaves``, ``cut``, ``released``, ``partly`` and ``saving`` are the backward plan's. ``behind``: the
    gradients that torch makes behind the backward graph."""

    trace: Trace
    declared: Sequence[InputDecl]
    inputs: list[Value | None]
    results: Results
    user_results: int
    training: bool
    mutated: list[MutatedInput]
    forms: list[FormOfInput]
    versions_of_inputs: dict[int, int]
    own_random: bool = False
    placed: tuple[tuple[int, int, int], ...] = ()
    between: tuple[tuple[int, tuple[int, ...]], ...] = ()
    leaves: tuple[int, ...] = ()
    cut: tuple[int, ...] = ()
    released: tuple[int, ...] = ()
    partly: tuple[tuple[int, tuple[int, ...]], ...] = ()
    saving: tuple[Region, ...] = ()
    tangents: list[tuple[Value, Tangent]] = field(default_factory=list)
    gradients: list[tuple[int, Value]] = field(default_factory=list)
    behind: list[tuple[int, Value]] = field(default_factory=list)


@dataclass(slots=True)
class _Arguments:
    """The traced inputs. ``passed`` go to the program; ``leaves`` are what gradients are taken of, by position."""

    passed: list[Any] = field(default_factory=list)
    storages: dict[int, Storage] = field(default_factory=dict)
    leaves: dict[int, TracedTensor] = field(default_factory=dict)


def trace_program(
    program: Program,
    declared: Sequence[InputDecl],
    example_inputs: Sequence[Any],
    operators: OperatorLibrary,
    env: ShapeEnv,
    *,
    training: bool,
    decompositions: Decompositions = NOTHING,
    questions: Questions | None = None,
) -> Joint:
    """Record ``program``. With ``training`` the backward is recorded too, for inputs that require grad.

    UnsupportedProgramError for what cannot be traced; an exception of the program itself becomes one (AOT101), so that
    the caller runs the program eagerly and the user sees the original. OpenQuestion for one about content
    that ``questions`` does not answer.
    """
    trace = Trace(operators, env, questions)
    arguments = _Arguments()
    try:
        recording = TraceMode(trace, decomposing(handle, decompositions))
        with restored(), without_hooks(), recording, symbolic_composites(bool(env.symbols)):
            _make_inputs(trace, arguments, declared, example_inputs, training)
            outputs = list(program(trace.recorder, arguments.passed))
        joint = _finish_forward(trace, arguments, declared, outputs)
        joint.own_random = any(map(is_random, decompositions))
        if training:
            _record_backward(joint, arguments, decomposing(handle_backward, decompositions))
        else:
            _check_inference(joint)
        _check_random_numbers(joint)
        check_reach(trace, arguments.storages, {index for index, _ in [*joint.gradients, *joint.behind]})
        joint.placed = places_named(trace, arguments.storages)
        return joint
    except (StackError, OpenQuestion):
        raise
    except Exception as error:
        if _NO_DATA in str(error):
            raise UnsupportedProgramError(
                "AOT106", "an operator reads the content of a tensor", where=trace.recorder.where
            ) from error
        raise UnsupportedProgramError(
            "AOT101",
            f"tracing stopped with {type(error).__name__}: {_without_cpp_frames(str(error))}",
            where=trace.recorder.where,
            action="if the program runs without the compiler, report this as a missing operator",
        ) from error
    finally:
        trace.close()


def _without_cpp_frames(message: str) -> str:
    """Some of torch's messages end with the frames of its C++ code, which say nothing to the user."""
    return message.partition("\nException raised from ")[0]


def _make_inputs(
    trace: Trace,
    arguments: _Arguments,
    declared: Sequence[InputDecl],
    example_inputs: Sequence[Any],
    training: bool,
) -> None:
    for index, (decl, example) in enumerate(zip(declared, example_inputs, strict=True)):
        if isinstance(example, torch.Tensor):
            arguments.passed.append(_tensor_input(trace, arguments, index, decl, example, training))
        elif isinstance(decl.spec, SymSpec) and isinstance(decl.spec.expr, Expr):
            arguments.passed.append(trace.sizes.to_torch(trace.env.simplify(decl.spec.expr)))
        elif decl.kind is InputKind.SYMBOL or isinstance(example, bool | int | str | None):
            arguments.passed.append(example)
        else:
            raise UnsupportedProgramError("AOT102", f"input {decl.name} is a {type(example).__name__}")


def _tensor_input(
    trace: Trace, arguments: _Arguments, index: int, decl: InputDecl, example: torch.Tensor, training: bool
) -> TracedTensor:
    spec = decl.spec
    if not isinstance(spec, TensorSpec) or not _is_ordinary(example):
        raise UnsupportedProgramError("AOT102", f"input {decl.name} is not an ordinary strided tensor")
    sizes, strides = spec.sizes, spec.strides
    if trace.env.has_equalities:
        sizes, strides = (tuple(map(trace.env.simplify, numbers)) for numbers in (sizes, strides))
    bare = TensorSpec(sizes, strides, spec.dtype, spec.device)
    made = trace.fresh(trace.recorder.input(decl.name, bare), index, int(example.storage_offset()))
    storage = arguments.storages[index] = made.storage_record
    if training and example.requires_grad:
        made.requires_grad_()
        arguments.leaves[index] = made
        if not example.is_leaf:
            made = _with_history(trace, made)
        storage.initial_grad_fn = made.grad_fn
    return made


def _with_history(trace: Trace, leaf: TracedTensor) -> TracedTensor:
    """The tensor as the result of an operation, as its example is. The example got its history in other modes than
    those in which the program begins: gradients may be off there, and turned on inside."""
    trace.adopting = leaf.storage_record
    try:
        with torch.enable_grad():
            made: Any = leaf.clone()  # the handler answers with the storage's own tensor
    finally:
        trace.adopting = None
    return made  # type: ignore[no-any-return]


def _is_ordinary(tensor: torch.Tensor) -> bool:
    """Whether the tensor is strided memory of numbers and its class changes no operator."""
    cls = type(tensor)
    plain = cls is torch.Tensor or (
        cls.__torch_function__ is torch._C._disabled_torch_function_impl
        and not hasattr(cls, "__tensor_flatten__")
    )
    if not plain or tensor.layout is not torch.strided or tensor.is_quantized:
        return False
    return not tensor._is_zerotensor()  # which has no memory


def _finish_forward(
    trace: Trace, arguments: _Arguments, declared: Sequence[InputDecl], outputs: list[Any]
) -> Joint:
    training = bool(arguments.leaves)
    results = classify(trace, outputs, training=training)
    user_results = len(results.graph)
    separate(trace, results, training=training)
    written = {i: s for i, s in arguments.storages.items() if s.value is not s.first}
    if any(s.has_new_history for i, s in arguments.storages.items() if i not in written):
        raise UnsupportedProgramError(
            "AOT125",
            "what a tensor that autograd follows contains is copied to it, which changes its history alone",
            action="leave the copy out",
        )
    firsts = {storage.first for storage in written.values()}
    forms = forms_of(arguments.storages, written)
    versions = versions_of({i: arguments.passed[i] for i in arguments.storages}, forms, written)
    mutated = []
    for index, storage in written.items():
        graph_index = add_mutation(trace, results, storage, firsts)
        mutated.append(MutatedInput(index, graph_index, storage.has_new_history, versions.pop(index)))
    inputs = [arguments.storages[i].first if i in arguments.storages else None for i in range(len(declared))]
    return Joint(
        trace, declared, inputs, results, user_results, training, mutated, list(forms.values()), versions
    )


def _record_backward(joint: Joint, arguments: _Arguments, handler: Handler) -> None:
    """Run the engine from the differentiable results to the leaves, recording what it computes."""
    trace = joint.trace
    trace.recorder.backward = True
    trace.recorder.where = None
    tracked = {m.graph_index for m in joint.mutated if m.differentiable}
    _record_ancestry(joint)
    outputs: list[_Differentiated] = []
    for index, result in enumerate(joint.results.graph):
        tensor = result.tensor
        if (
            tensor is None
            or not tensor.requires_grad
            or (index >= joint.user_results and index not in tracked)
            or index in joint.leaves
        ):
            continue
        spec = tangent_spec(tensor.value.spec)
        value = trace.recorder.input(f"tangent_{index}", spec)
        outputs.append(_Differentiated(tensor, trace.fresh(value), value, Tangent(index, spec)))
    leaves = list(arguments.leaves.items())
    joint.tangents = [(output.value, output.declared) for output in outputs]
    if not outputs or not leaves:
        return
    results = {output.declared.graph_index: output.tensor for output in outputs}
    joint.partly = partly_reached(results, arguments.leaves)
    joint.saving = saving_regions(results, arguments.leaves | _earlier(joint))
    with (
        TraceMode(trace, handler),
        torch.autograd.set_multithreading_enabled(False),
        without_autocast(),
        without_writes(trace),
        dividing_single_factors(trace, [output.tensor for output in outputs]),
    ):
        gradients, released = _differentiate(outputs, tuple(leaf for _, leaf in leaves))
        trace.recorder.check_required()
    joint.released = tuple(output.declared.graph_index for output in released)
    joint.tangents = [(o.value, o.declared) for o in outputs if o not in released]
    tangents = [output.value for output in outputs]
    for (index, _), gradient in zip(leaves, gradients, strict=True):
        if gradient is not None:
            value = values_of(trace, gradient)
            if value.number in trace.behind:
                joint.behind.append((index, value))
                continue
            value = in_layout_of(trace.recorder, joint.inputs[index], value, tangents)
            joint.gradients.append((index, value))
    followed = {m.input_index for m in joint.mutated if m.differentiable} | {
        f.input_index for f in joint.forms
    }
    joint.cut = tuple(index for index, leading in joint.partly if not leading and index not in followed)


@dataclass(frozen=True, slots=True, eq=False)
class _Differentiated:
    """A result, the gradient that arrives for it, as a value of the record too, and its declaration."""

    tensor: TracedTensor
    tangent: TracedTensor
    value: Value
    declared: Tangent


def _differentiate(
    outputs: list[_Differentiated], leaves: tuple[TracedTensor, ...]
) -> tuple[Sequence[TracedTensor | None], list[_Differentiated]]:
    """The gradients of the leaves, and the results that have none: the program has differentiated them itself, and let
    go of what that needs."""
    try:
        return _run_engine(outputs, leaves), []
    except RuntimeError as error:
        if not str(error).startswith(_SECOND_TIME):
            raise
    kept = [output for output in outputs if not _is_released(output, leaves)]
    released = [output for output in outputs if output not in kept]
    return _run_engine(kept, leaves) if kept else [None] * len(leaves), released


def _is_released(output: _Differentiated, leaves: tuple[TracedTensor, ...]) -> bool:
    try:
        _run_engine([output], leaves)
    except RuntimeError as error:
        if not str(error).startswith(_SECOND_TIME):
            raise
        return True
    return False


def _run_engine(outputs: list[_Differentiated], leaves: tuple[TracedTensor, ...]) -> Any:
    # The engine itself: torch.autograd.grad imports torch's symbolic shapes to check what holds by construction.
    return torch.autograd.Variable._execution_engine.run_backward(
        tuple(output.tensor for output in outputs),
        tuple(output.tangent for output in outputs),
        True,
        False,
        leaves,
        allow_unreachable=True,
        accumulate_grad=False,
    )


def _earlier(joint: Joint) -> dict[int, torch.Tensor]:
    """The results that others are computed from, numbered behind the inputs."""
    found: dict[int, torch.Tensor] = {}
    for number, index in enumerate(earlier_results(joint.between), len(joint.inputs)):
        tensor = joint.results.views[-1 - index] if index < 0 else joint.results.graph[index].tensor
        assert tensor is not None, "others are computed from it"
        found[number] = tensor
    return found


def _record_ancestry(joint: Joint) -> None:
    """Which results are leaves that the program made, and which others results are computed from; inputs that the
    program has given another history count as results.

    Views that are results count by the numbers that ``BackwardPlan.between`` has for them. What a view is computed
    from is where autograd's own nodes lead when it is made again.
    """
    seen = {
        index: result.tensor
        for index, result in enumerate(joint.results.graph[: joint.user_results])
        if result.tensor is not None and result.tensor.requires_grad
    }
    written = {
        m.graph_index: joint.results.graph[m.graph_index].tensor for m in joint.mutated if m.differentiable
    }
    views = {-1 - position: tensor for position, tensor in joint.results.views.items()}
    inputs = {id(storage.base) for storage in joint.trace.storages if storage.input_index is not None}
    joint.leaves = tuple(i for i, tensor in seen.items() if tensor.is_leaf and id(tensor) not in inputs)
    known = ancestry({**seen, **{i: tensor for i, tensor in written.items() if tensor is not None}, **views})
    joint.between = tuple((index, earlier) for index, earlier in known if index >= 0)
    for index, earlier in known:
        if index < 0:
            view_through(joint.results, -1 - index, [-1 - other for other in earlier if other < 0])
    if joint.leaves and len(joint.leaves) == len(seen):
        raise UnsupportedProgramError(
            "AOT116", "all results that require grad are leaves that the program makes"
        )


def _check_random_numbers(joint: Joint) -> None:
    """A backward that draws again what its forward drew, as checkpointing does, would need the state of back then."""
    if random_calls(joint.trace.recorder.values, backward=True):
        raise UnsupportedProgramError("AOT119", "the program draws random numbers in its backward")


def _check_inference(joint: Joint) -> None:
    """Without an input that requires grad no result may: it would be differentiable with respect to nothing at hand."""
    if any(r.tensor is not None and r.tensor.requires_grad for r in joint.results.graph):
        raise UnsupportedProgramError(
            "AOT116", "the program turns gradients on by itself and returns a result that requires grad"
        )
