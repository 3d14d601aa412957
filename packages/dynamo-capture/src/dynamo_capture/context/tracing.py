"""The context of one capture: its services and the questions that values ask each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from dynamo_capture.bytecode.resume.code import ResumeCodes
from dynamo_capture.context.pending_calls import Outside
from dynamo_capture.context.semantics import Arrays, Attributes, Calls, Numbers, Operators, Tensors
from dynamo_capture.context.state import AttributeDicts, Draws, Effects, Inliner, Wrapping
from dynamo_capture.foundation.errors import UserRaise
from dynamo_capture.graph.graph_builder import GraphOutput
from dynamo_capture.guard_kinds.guard_log import GuardLog
from dynamo_capture.session.is_compiling_answers import Asking
from dynamo_capture.session.specialization import Policy
from dynamo_capture.shapes import Inference
from dynamo_capture.sources.number_facts import Facts
from fx_interface.errors import UserLocation
from fx_interface.source import Source
from fx_interface.symbols import Expr, Relation, ShapeEnv
from fx_interface.torch_internals.function_levels import Level

V = TypeVar("V")
T = TypeVar("T")


class Tracing(Protocol[V]):
    """One capture, as seen from values, opcodes and handlers. Errors: ``UserRaise`` where the program raises,
    ``GraphBreak`` where the translator cannot follow."""

    asking: Asking
    env: ShapeEnv
    facts: Facts
    guards: GuardLog
    inference: Inference
    outside: Outside
    output: GraphOutput
    policy: Policy
    resumes: ResumeCodes
    takes_in: Callable[[Any], bool]
    """Whether an optimized function that is called has the options of this trace, so that it is traced into."""
    frames: list[Any]
    """Frames that are being interpreted, innermost last."""
    generators: list[Any]
    running: list[Any]
    blocks: list[Any]
    """Blocks of modes that the trace has entered."""
    entry: dict[Callable[..., Any], Any]
    """What torch's switches stood at where the graph begins."""
    ignoring_modes: bool
    """Whether the function is called in modes of ``__torch_dispatch__`` that ignore compiled code."""
    levels: tuple[Level, ...]
    """The levels of transforms of ``torch.func`` around the function, outermost first."""
    keyed: dict[int, V]
    weakly_referenced: set[Source]
    new_references: dict[int, V]
    has_dropped_holder: bool
    new_classes: dict[Any, V]
    size_bindings: list[tuple[Any, Source]]
    packed_strides: list[tuple[Expr, Source]]
    """Strides of inputs that are to be products of sizes in each call."""
    stop: Any
    """Where in called functions the graph ends, if it ends there."""
    runs: int
    steps: int

    @property
    def arrays(self) -> Arrays[V]:
        """Arrays of numpy."""

    @property
    def attribute_dicts(self) -> AttributeDicts:
        """Dictionaries of attributes that the program holds itself."""

    @property
    def attributes(self) -> Attributes[V]:
        """Attributes of values."""

    @property
    def calls(self) -> Calls[V]:
        """Calls of what is known."""

    @property
    def draws(self) -> Draws[V]:
        """Random numbers."""

    @property
    def effects(self) -> Effects[V]:
        """Side effects."""

    @property
    def inliner(self) -> Inliner[V]:
        """Functions that are traced into."""

    @property
    def numbers(self) -> Numbers[V]:
        """Numbers computed when the code runs."""

    @property
    def operators(self) -> Operators[V]:
        """Python's operators."""

    @property
    def tensors(self) -> Tensors[V]:
        """Operations on tensors."""

    @property
    def wrapping(self) -> Wrapping[V]:
        """Values of existing objects."""

    def wrap(self, real: Any, source: Source) -> V:
        """An existing object as a value."""

    def new_class(self, real: Any) -> V | None:
        """What stands for a class that this trace has made, where ``real`` is the sample of one."""

    def line_of_user(self) -> UserLocation | None:
        """The line that is being traced, of the innermost frame that is not torch's, if there is one."""

    def where(self) -> UserLocation | None:
        """The line that is being traced, of the innermost frame."""

    def known(self, value: Any) -> V:
        """The value of an object that needs no guard: constants as they are, others by reference."""

    def force(self, value: V) -> V:
        """The value behind a lazily read item."""

    def settled(self, value: V) -> V:
        """The value with the items of (nested) tuples read."""

    def constant(self, value: V) -> Any:
        """The Python object of a constant; a graph break where it is not known."""

    def is_constant(self, value: V) -> bool:
        """Whether the value is known, without a number that is left open."""

    def fold(self, compute: Callable[[], T]) -> T:
        """Run Python on constants; what it raises, the program raises."""

    def truth(self, value: V) -> bool:
        """``bool(value)``."""

    def index(self, value: V) -> Any:
        """An integer (or a constant slice) as used for indexing; a symbolic one is fixed."""

    def integer(self, value: V) -> int:
        """An integer, where nothing else will do."""

    def hash_key(self, value: V) -> Any:
        """A hashable Python object that stands for a dictionary key."""

    def decide(self, relation: Relation) -> bool:
        """A question about sizes, answered for this compilation."""

    def raises(self, cls: type[BaseException], *args: Any) -> UserRaise:
        """The signal that the program raises ``cls(*args)``."""

    def undefined(self, name: str, text: str) -> UserRaise:
        """The signal that the program reads a name that nothing is bound to."""

    def attribute(self, owner: V, name: str) -> V:
        """``owner.name``; an AttributeError says, if it does not yet, which of what."""

    def exception(self, error: BaseException) -> Any:
        """A real exception as a value."""

    def put_in_context(self, raised: V, handled: V | None = None) -> None:
        """What is raised while another exception is handled (``handled``, or the innermost) has that as its
        ``__context__``."""

    def handled(self) -> V | None:
        """The exception that is being handled, in the innermost frame that handles one."""

    def guard_absent(self, source: Source | None, key: Any) -> None:
        """A dict lacks ``key``."""

    def guard_present(self, source: Source | None, key: Any) -> None:
        """A dict has ``key``."""

    def guard_keys(self, source: Source, real: dict[Any, Any]) -> None:
        """A dict's keys stay the same."""

    def guard_length(self, source: Source, real: Any) -> None:
        """A container's length stays the same."""
