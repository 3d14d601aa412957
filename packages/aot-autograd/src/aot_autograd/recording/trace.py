"""Tracing: a function runs once on tensors without data, and every ATen operator it reaches is recorded.

A ``TracedTensor`` is a wrapper subclass that knows its sizes but has no memory, so torch's own autograd and composite
operators run above it as always; a dispatch mode below them sees each remaining ATen operator and hands it to
``functionalize``. A backward through the engine in the same mode records torch's own derivative formulas.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Any

import torch
from torch._ops import OpOverload

from aot_autograd.recording.content_queries import Questions
from aot_autograd.recording.record import Recorder
from aot_autograd.recording.storage import Storage, ViewStep
from aot_autograd.recording.values import Value
from fx_interface.errors import UnsupportedProgramError
from fx_interface.operator_facts.absent_gradients import has_no_gradient, no_results
from fx_interface.operators import OperatorLibrary
from fx_interface.symbols import Expr, IntLike, ShapeEnv
from fx_interface.tensor_spec import TensorSpec
from fx_interface.torch_internals.dispatch_mode import DispatchMode
from fx_interface.torch_symbols.sym_floats import fixed, float_from_torch
from fx_interface.torch_symbols.sym_nodes import SizeTable


class TracedTensor(torch.Tensor):
    """A tensor without data: its storage record, the view that leads to it, and its value when last read.

    ``offset``: where it begins in its memory, in elements; ``born``: the version that its memory had when it was made.
    """

    __slots__ = ("born", "generation", "offset", "storage_record", "value", "view_step")
    storage_record: Storage
    view_step: ViewStep | None
    value: Value
    generation: int
    offset: IntLike
    born: int

    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]  # torch types its own as the disabled one
        cls, func: OpOverload, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Reached only when an operator runs on a traced tensor after its trace is over."""
        raise UnsupportedProgramError("AOT108", f"{func} ran on a tensor that belongs to a finished trace")


class Trace:
    """One run of a program: the recorder, the storages, and constants met on the way.

    ``owners`` tells in which storage a value (by number) was first held: the others hold it as a copy.
    ``unsure_copies`` are storages (by identity) of which, or as which, a copy was made that eager does not make where a
    size that only data tell is 0 or 1.
    ``placed``: inputs in whose memory the program names places by number; ``shown_beyond``: inputs that have views
    which show memory that is not their own, and up to which element from their first; ``formed_views``: inputs of which
    a view has taken another form, and autograd follows it; ``functional_forms``: operators
    whose functional forms were made; ``behind``: values (by number) that torch computes behind the backward graph,
    because they are sparse tensors; ``questions``: what was asked about tensors' content.
    """

    def __init__(self, operators: OperatorLibrary, env: ShapeEnv, questions: Questions | None = None) -> None:
        self.env = env
        self.questions = questions or Questions()
        self.sizes = SizeTable(env)
        self.recorder = Recorder(operators, env)
        self.storages: list[Storage] = []
        self.owners: dict[int, Storage] = {}
        self.constants: list[tuple[Value, torch.Tensor]] = []
        self.adopting: Storage | None = None
        self.unsure_copies: set[int] = set()
        self.placed: set[int] = set()
        self.shown_beyond: dict[int, int] = {}
        self.formed_views: set[int] = set()
        self.functional_forms: set[str] = set()
        self.behind: set[int] = set()

    def tensor(
        self, storage: Storage, step: ViewStep | None, value: Value, offset: IntLike | None = None
    ) -> TracedTensor:
        """A traced tensor for ``value``, which lies in ``storage`` at the view ``step`` and begins at ``offset``."""
        spec = value.spec
        if not isinstance(spec, TensorSpec):
            raise UnsupportedProgramError("AOT109", f"{value.op} returned {spec}, not a tensor")
        inferring = torch.is_inference_mode_enabled()
        if storage.base is not None:  # what shares its memory is what it is, whatever the mode
            inferring = storage.base.is_inference()
        changed = inferring is not torch.is_inference_mode_enabled()
        with torch.inference_mode(inferring) if changed else nullcontext():
            offset = storage.begin if offset is None else offset
            made: TracedTensor = self.sizes.wrapper(TracedTensor, spec, offset=offset)
        made.storage_record = storage
        made.view_step = step
        made.value = value
        made.generation = storage.generation
        made.offset = offset
        made.born = 0 if storage.base is None or storage.base.is_inference() else storage.base._version
        return made

    def fresh(self, value: Value, input_index: int | None = None, begin: int = 0) -> TracedTensor:
        """A traced tensor in memory of its own, where it begins at the element ``begin``."""
        storage = Storage(value, input_index, begin)
        made = self.tensor(storage, None, value)
        storage.base = made
        self.storages.append(storage)
        self.owners.setdefault(value.number, storage)
        return made

    def expression(self, number: Any) -> Any:
        """The ``int``, ``Expr`` or ``bool`` behind one of torch's symbolic numbers; the number itself for a float."""
        if isinstance(number, torch.SymInt):
            value = number.node.value
            return self.env.simplify(value) if isinstance(value, Expr) else value
        if isinstance(number, torch.SymBool):
            return self.sizes.decide(number.node.value)
        return fixed(float_from_torch(number), self.env.specialize)

    def lift(self, tensor: torch.Tensor) -> Value:
        """The value of a real tensor that the program made out of Python numbers or closed over."""
        for value, known in self.constants:
            if known is tensor:
                return value
        if tensor.requires_grad:
            raise UnsupportedProgramError(
                "AOT103",
                "a tensor that requires grad is neither an input nor computed by the program",
                action="make it a parameter or an argument",
            )
        if tensor.layout is not torch.strided:
            raise UnsupportedProgramError("AOT103", f"a constant tensor has the layout {tensor.layout}")
        spec = TensorSpec(tuple(tensor.shape), tuple(tensor.stride()), tensor.dtype, tensor.device)
        value = self.recorder.input(f"constant_{len(self.constants)}", spec)
        value.backward = False  # also one that a backward makes: the runtime has it before anything runs
        self.constants.append((value, tensor))
        return value

    def close(self) -> None:
        """Break the cycles between tensors and storages, so that the trace's memory is freed at once."""
        for storage in self.storages:
            storage.base = storage.initial_grad_fn = storage.form = storage.reformed = None


Handler = Callable[[Trace, OpOverload, tuple[Any, ...], Mapping[str, Any]], Any]


class TraceMode(DispatchMode):
    """Hands every ATen operator to ``handler``."""

    def __init__(self, trace: Trace, handler: Handler) -> None:
        super().__init__()
        self._trace = trace
        self._handler = handler

    def dispatch(self, func: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Record ``func``, unless it derives what no gradient has reached."""
        if has_no_gradient(func, args):
            return no_results(func)
        return self._handler(self._trace, func, args, kwargs)
