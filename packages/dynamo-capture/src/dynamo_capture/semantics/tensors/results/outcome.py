"""What is remembered of a tensor operation: its result, described without the arguments it was learnt from."""

from __future__ import annotations

from typing import Any

from dynamo_capture.values import TensorMeta


class ArgumentRef:
    """In a remembered result: the argument itself, by its position among the tensor arguments."""

    __slots__ = ("index",)

    def __init__(self, index: int) -> None:
        self.index = index


class NewTensor:
    """In a remembered result: a new tensor; ``view_of`` is the tensor argument that it is a differentiable view of,
    ``memory_of`` the one whose memory it shows. ``refuses_writes``:
    whether autograd does not follow writes to a view, because of how it was made; ``maker``: the name of the node that
    made a view whose writes it follows, and which of its results it is (see ``given_views``)."""

    __slots__ = ("maker", "memory_of", "meta", "refuses_writes", "view_of")

    def __init__(
        self,
        meta: TensorMeta,
        view_of: int | None,
        memory_of: int | None = None,
        refuses_writes: bool = False,
        maker: tuple[str, int, int] | None = None,
    ) -> None:
        self.maker = maker
        self.refuses_writes = refuses_writes
        self.meta = meta
        self.view_of = view_of
        self.memory_of = view_of if memory_of is None else memory_of


class Outcome:
    """``updates``: what is known of the arguments afterwards; ``writes``: some of their content changed;
    ``written``: by position, the tensor arguments whose content changed; ``draws``: a random generator moved on;
    ``may_fail``: an operator may raise because of what is in its tensors;
    ``reads``: by position, the tensor arguments whose content decided about the result; ``is_determined``: the
    result's content follows from the arguments'; ``warns``: the operation has given a warning; ``resized``: by
    position, the tensors that were given as ``out=`` and that have other sizes since."""

    __slots__ = (
        "draws",
        "has_tensor",
        "is_determined",
        "may_fail",
        "reads",
        "resized",
        "result",
        "updates",
        "warns",
        "writes",
        "written",
    )

    def __init__(
        self,
        result: Any,
        has_tensor: bool,
        updates: list[tuple[int, TensorMeta]],
        *,
        writes: bool,
        draws: bool,
        may_fail: bool = False,
        leaves_open: bool = False,
        reads: tuple[int, ...] = (),
        written: tuple[int, ...] = (),
        resized: tuple[int, ...] = (),
    ) -> None:
        self.resized = resized
        self.written = written
        self.result = result
        self.reads = reads
        self.is_determined = _is_new(result) and not (writes or draws or leaves_open)
        self.has_tensor = has_tensor
        self.updates = updates
        self.writes = writes
        self.draws = draws
        self.may_fail = may_fail
        self.warns = False

    @property
    def is_pure(self) -> bool:
        """Whether the operation need not run if nothing uses its result."""
        return not (self.writes or self.draws or self.may_fail)

    @property
    def may_save(self) -> bool:
        """Whether autograd may save tensors for a backward of the operation. A view saves none."""
        return any(made.meta.requires_grad and made.view_of is None for made in new_tensors(self.result))


class ResultSequence:
    __slots__ = ("cls", "items")

    def __init__(self, cls: type, items: list[Any]) -> None:
        self.cls = cls
        self.items = items


def _is_new(result: Any) -> bool:
    """Whether a result is a new tensor, or new tensors in a row."""
    if type(result) is ResultSequence:
        return bool(result.items) and all(type(item) is NewTensor for item in result.items)
    return type(result) is NewTensor


def new_tensors(described: Any) -> list[NewTensor]:
    """The tensors in a remembered result."""
    if type(described) is ResultSequence:
        return [made for item in described.items for made in new_tensors(item)]
    return [described] if type(described) is NewTensor else []
