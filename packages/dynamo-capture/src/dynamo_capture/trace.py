"""One capture: everything that the translation of one frame (and of what it inlines) shares."""

from __future__ import annotations

import operator
from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar

from dynamo_capture.bytecode.resume.code import ResumeCodes
from dynamo_capture.context.pending_calls import Outside
from dynamo_capture.foundation.break_kinds import UNKNOWN_VALUE
from dynamo_capture.foundation.break_positions import Stop
from dynamo_capture.foundation.errors import GraphBreak, NotConstant, UserRaise, forget_frames
from dynamo_capture.foundation.known_objects import is_known
from dynamo_capture.foundation.skip_rules import is_file_of_torch
from dynamo_capture.frames import tracebacks  # these fill the table of wrappers
from dynamo_capture.frames.frame import Frame
from dynamo_capture.frames.generator_values import GeneratorValue
from dynamo_capture.frames.hash_keys import hash_key
from dynamo_capture.graph.graph_builder import GraphOutput
from dynamo_capture.guard_kinds.guard_log import GuardLog
from dynamo_capture.interpreter.inlining import Inliner
from dynamo_capture.semantics.attributes.service import Attributes
from dynamo_capture.semantics.calls.arrays.arrays import Arrays
from dynamo_capture.semantics.calls.dispatch import Calls
from dynamo_capture.semantics.modes.modes import Block, Switches
from dynamo_capture.semantics.modes.settings import read
from dynamo_capture.semantics.numbers.numbers import Numbers
from dynamo_capture.semantics.operators.operators import Operators
from dynamo_capture.semantics.random_numbers.drawing import Draws
from dynamo_capture.semantics.tensor_service import Tensors
from dynamo_capture.session.is_compiling_answers import Asking, Place
from dynamo_capture.session.specialization import Policy
from dynamo_capture.shapes import Inference
from dynamo_capture.side_effects.attribute_dicts import AttributeDicts
from dynamo_capture.side_effects.effects import Effects
from dynamo_capture.sources.number_facts import Facts
from dynamo_capture.sources.sources import known_object
from dynamo_capture.values import (
    FALSE,
    NONE,
    TRUE,
    Const,
    Lazy,
    ObjectValue,
    TupleValue,
    Value,
)
from dynamo_capture.values.iteration.running import RunningIterator
from dynamo_capture.values.new_class import ALIASES, check_constant
from dynamo_capture.values.objects import exception_fields
from dynamo_capture.values.tensors.floating import RuntimeFloat
from dynamo_capture.variable_builder import (
    containers,  # noqa: F401  # these fill the table of wrappers
    functions,  # noqa: F401  # these fill the table of wrappers
    iterators,  # noqa: F401  # these fill the table of wrappers
    modes,  # noqa: F401  # these fill the table of wrappers
    storages,  # noqa: F401  # these fill the table of wrappers
)
from dynamo_capture.variable_builder.objects import Wrapping
from fx_interface.errors import UnbackedSymbolError, UserLocation
from fx_interface.operators import OperatorLibrary
from fx_interface.source import Source
from fx_interface.symbols import Expr, Relation, ShapeEnv
from fx_interface.torch_internals.function_levels import Level
from fx_interface.torch_internals.torch_state import saved_tensors_are_watched

T = TypeVar("T")


class Trace:
    """Shared state and the questions that values ask each other."""

    def __init__(
        self,
        library: OperatorLibrary,
        policy: Policy,
        memo: dict[Any, Any],
        resumes: ResumeCodes,
        takes_in: Callable[[Any], bool] = lambda function: False,
        told_no: frozenset[Place] = frozenset(),
    ) -> None:
        self.asking = Asking(told_no)
        self.takes_in = takes_in
        """Whether an optimized function that is called has the options of this trace, so that it is traced into."""
        self.env = ShapeEnv()
        self.policy = policy
        self.frames: list[Frame] = []
        self.runs = 0
        self.resumes = resumes
        self.stop: Stop | None = None
        self.blocks: list[Block] = []
        self.entry: Switches = {}
        self.ignoring_modes = False
        self.levels: tuple[Level, ...] = ()
        """What torch's switches stood at where the graph begins."""
        self.generators: list[GeneratorValue] = []
        self.steps = 0
        self.size_bindings: list[tuple[Any, Source]] = []
        self.packed_strides: list[tuple[Expr, Source]] = []
        """Strides of inputs that are to be products of sizes in each call."""
        self._locations: dict[tuple[str, int, str], UserLocation] = {}
        self.guards = GuardLog(self.where)
        self.facts = Facts()
        self.numbers = Numbers(self)
        self.output = GraphOutput(self.env, lambda: read(self, saved_tensors_are_watched))
        self.attribute_dicts = AttributeDicts(self)
        self.effects = Effects(self._is_namespace, self.attribute_dicts)
        self.keyed: dict[int, Value] = {}
        self.weakly_referenced: set[Source] = set()
        self.new_references: dict[int, Value] = {}
        self.has_dropped_holder = False
        self.new_classes: dict[Any, Value] = {}
        self.draws = Draws()
        self.outside = Outside()
        self.running: list[RunningIterator] = []
        self.inference = Inference(library, self.env, policy.follows_data, not policy.is_fullgraph)
        self.wrapping = Wrapping(self)
        self.attributes = Attributes(self)
        self.calls = Calls(self)
        self.operators = Operators(self)
        self.tensors = Tensors(self, memo)
        self.arrays = Arrays(self)
        self.inliner = Inliner(self)
        self.wrap = self.wrapping.wrap

    def _is_namespace(self, real: dict[str, Any]) -> bool:
        return self.inliner.is_scope(real)

    @property
    def is_released(self) -> bool:
        """Whether it has let go of everything."""
        return not vars(self)

    def release(self) -> None:
        """Let go of everything, so that what the trace has seen does not live until Python searches for cycles."""
        for tensor in self.tensors.inputs:
            tensor.real = None
        self.wrapping.release()
        if self.env.unanswered is not None:
            forget_frames(self.env.unanswered)
        vars(self).clear()

    def new_class(self, real: Any) -> Value | None:
        """What stands for a class that this trace has made, or for a function in one, where ``real`` is its sample."""
        return self.new_classes.get(real) if self.new_classes and type(real) in (type, FunctionType) else None

    def line_of_user(self) -> UserLocation | None:
        """The line that is being traced, of the innermost frame that is not torch's, if there is one."""
        for frame in reversed(self.frames):
            if not is_file_of_torch(frame.code.co_filename):
                return UserLocation(frame.code.co_filename, frame.line or 0, frame.code.co_qualname)
        return self.where()

    def where(self) -> UserLocation | None:
        """The line that is being traced, of the innermost frame."""
        if not self.frames:
            return None
        frame = self.frames[-1]
        found = frame.location
        if found is None or found.line != (frame.line or 0):
            code = frame.code
            key = (code.co_filename, frame.line or 0, code.co_qualname)
            found = self._locations.get(key)
            if found is None:
                found = self._locations[key] = UserLocation(*key)
            frame.location = found
        return found

    # Values.

    def known(self, value: Any) -> Value:
        """The value of an object that needs no guard: constants as they are, others by reference."""
        if value is None:
            return NONE
        if value is True:
            return TRUE
        if value is False:
            return FALSE
        if is_known(value):
            if self.new_classes and type(value) in ALIASES:
                check_constant(value, self.new_classes)
            return Const(value)
        return self.wrap(value, known_object(value))

    def force(self, value: Value) -> Value:
        """The value behind a lazily read item."""
        if type(value) is Lazy:
            found = value.value
            if found is None:
                found = (
                    self.known(value.real) if value.source is None else self.wrap(value.real, value.source)
                )
                value.value = found
            return found
        return value

    def constant(self, value: Value) -> Any:
        """The Python object of a constant; a graph break where it is not known."""
        try:
            return self.settled(value).as_constant()
        except NotConstant:
            raise GraphBreak(UNKNOWN_VALUE, f"{value.describe()} is not known while tracing") from None

    def is_constant(self, value: Value) -> bool:
        """Whether the value is known, without a number that is left open."""
        settled = self.settled(value)
        if _is_open(settled):
            return False
        try:
            settled.as_constant()
        except NotConstant:
            return False
        return True

    def settled(self, value: Value) -> Value:
        """The value with the items of (nested) tuples read."""
        value = self.force(value)
        if isinstance(value, TupleValue):
            value.items[:] = [self.settled(item) for item in value.items]
        return value

    def fold(self, compute: Callable[[], T]) -> T:
        """Run Python on constants; what it raises, the program raises."""
        try:
            return compute()
        except (GraphBreak, UserRaise, NotConstant, UnbackedSymbolError):
            raise
        except Exception as error:
            raise UserRaise(self.exception(error)) from None

    def truth(self, value: Value) -> bool:
        """``bool(value)``."""
        if isinstance(value, Const) and not isinstance(value, RuntimeFloat):
            known = value.value
            return known if known is True or known is False else value.truth(self)
        return value.truth(self)

    def index(self, value: Value) -> Any:
        """An integer (or a constant slice) as used for indexing; a symbolic one is fixed."""
        return value.index(self)

    def integer(self, value: Value) -> int:
        """An integer, where nothing else will do."""
        found = self.index(value)
        return self.fold(lambda: operator.index(found))

    def hash_key(self, value: Value) -> Any:
        """A hashable Python object that stands for a dictionary key."""
        return hash_key(self, value)

    def decide(self, relation: Relation) -> bool:
        """A question about sizes, answered for this compilation."""
        self.env.location = self.where()
        return self.env.decide(relation)

    # Exceptions.

    def raises(self, cls: type[BaseException], *args: Any) -> UserRaise:
        """The signal that the program raises ``cls(*args)``."""
        values = [arg if isinstance(arg, Value) else self.known(arg) for arg in args]
        made = ObjectValue(cls)
        exception_fields.initialize(made, values)
        self.put_in_context(made)
        return UserRaise(made)

    def attribute(self, owner: Value, name: str) -> Value:
        """``owner.name``; an AttributeError says, if it does not yet, which of what."""
        try:
            return owner.get_attr(self, name)
        except UserRaise as raised:
            error = raised.value
            made = issubclass(error.python_type(), AttributeError) and error.real is None
            if made and not error.attrs.keys() & {"name", "obj"}:
                error.attrs.update(name=self.known(name), obj=owner)
            raise

    def undefined(self, name: str, text: str) -> UserRaise:
        """The signal that the program reads a name that nothing is bound to."""
        raised = self.raises(NameError, text)
        raised.value.attrs["name"] = self.known(name)
        return raised

    def exception(self, error: BaseException) -> ObjectValue:
        """A real exception as a value."""
        made = ObjectValue(type(error))
        made.attrs["args"] = TupleValue([self.known(arg) for arg in error.args])
        for name, value in vars(error).items():
            made.attrs[name] = self.known(value)
        for name, value in exception_fields.fields_of(error):
            if is_known(value):
                made.attrs[name] = self.known(value)
        self.put_in_context(made)
        tracebacks.keep_frames(made, error)
        return made

    def put_in_context(self, raised: Value, handled: Value | None = None) -> None:
        """What is raised while another exception is handled (``handled``, or the innermost) has that as its
        ``__context__``."""
        handled = handled or self.handled()
        if handled is None or handled is raised or not isinstance(raised, ObjectValue):
            return
        link: Value | None = handled
        seen: set[int] = set()  # a program can make a cycle
        while isinstance(link, ObjectValue) and id(link) not in seen:
            seen.add(id(link))
            following = link.attrs.get("__context__")
            if following is raised:
                del link.attrs["__context__"]
            link = following
        raised.attrs["__context__"] = handled
        self.effects.attribute(raised, "__context__")

    def handled(self) -> Value | None:
        """The exception that is being handled, in the innermost frame that handles one."""
        return next((frame.exceptions[-1] for frame in reversed(self.frames) if frame.exceptions), None)

    # Guards that containers ask for.

    def guard_absent(self, source: Source | None, key: Any) -> None:
        """A dict lacks ``key``."""
        if source is not None:
            self.guards.absent(source, key)

    def guard_present(self, source: Source | None, key: Any) -> None:
        """A dict has ``key``."""
        if source is not None:
            self.guards.present(source, key)

    def guard_keys(self, source: Source, real: dict[Any, Any]) -> None:
        """A dict's keys stay the same."""
        self.guards.keys(source, real)

    def guard_length(self, source: Source, real: Any) -> None:
        """A container's length stays the same."""
        self.guards.length(source, real)


def _is_open(value: Value) -> bool:
    """Whether a number that differs from call to call is the value, or in it."""
    if isinstance(value, TupleValue):
        return any(map(_is_open, value.items))
    return value.is_open
