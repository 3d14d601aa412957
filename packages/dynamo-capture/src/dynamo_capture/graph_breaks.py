"""The catalogue of graph breaks: a stable code, what it means, and what the user may do about it."""

from __future__ import annotations

from dataclasses import dataclass

from fx_interface.errors import UserLocation


@dataclass(frozen=True, slots=True)
class BreakKind:
    """One entry of the catalogue."""

    code: str
    summary: str
    advice: str


KINDS: dict[str, BreakKind] = {
    "CAP201": BreakKind(
        "CAP201",
        "a tensor's content decides",
        "use torch.where or masks instead of Python control flow; keep .item() outside",
    ),
    "CAP202": BreakKind(
        "CAP202",
        "a tensor is used as a Python index",
        "index a tensor with it, or keep the index as a Python integer",
    ),
    "CAP203": BreakKind(
        "CAP203", "autograd is run inside", "call backward() outside of the compiled function"
    ),
    "CAP204": BreakKind(
        "CAP204", "a tensor's memory is asked for", "keep storages and addresses out of the compiled function"
    ),
    "CAP205": BreakKind(
        "CAP205", "a tensor hook is registered", "register hooks outside of the compiled function"
    ),
    "CAP206": BreakKind(
        "CAP206",
        "an operation cannot be traced",
        "wrap it in dynamo_capture.allow_in_graph if it has no side effects, or leave it out",
    ),
    "CAP207": BreakKind(
        "CAP207", "a torch function gets an unknown object", "pass tensors, numbers, and containers of them"
    ),
    "CAP208": BreakKind(
        "CAP208", "a tensor's autograd state is used", "read it outside of the compiled function"
    ),
    "CAP209": BreakKind(
        "CAP209", "the random state is used", "seed generators outside of the compiled function"
    ),
    "CAP210": BreakKind(
        "CAP210",
        "an operation on a Python object is not supported",
        "rewrite it with plain containers and numbers, or leave it out",
    ),
    "CAP211": BreakKind("CAP211", "a value must be known", "compute it from constants or arguments"),
    "CAP212": BreakKind(
        "CAP212", "a hash cannot be known", "use strings, numbers or the object itself as keys"
    ),
    "CAP213": BreakKind("CAP213", "a container cannot be followed", "use a list, tuple or dict"),
    "CAP214": BreakKind("CAP214", "a descriptor cannot be followed", "use a property written in Python"),
    "CAP215": BreakKind(
        "CAP215", "a class, function or module is changed", "do so outside of the compiled function"
    ),
    "CAP216": BreakKind("CAP216", "a tensor of an unusual kind", "pass plain strided tensors"),
    "CAP220": BreakKind(
        "CAP220", "an instruction is not supported", "move the construct out of the compiled function"
    ),
    "CAP221": BreakKind("CAP221", "a variable's cell is missing", "report this"),
    "CAP222": BreakKind("CAP222", "calls are nested too deeply", "turn the recursion into a loop"),
    "CAP223": BreakKind("CAP223", "a coroutine", "compile the synchronous part"),
    "CAP230": BreakKind(
        "CAP230",
        "a function that is not written in Python",
        "use torch's functions, or call it outside of the compiled function",
    ),
    "CAP231": BreakKind("CAP231", "a break was asked for", "remove it to capture more"),
    "CAP232": BreakKind("CAP232", "a class is made", "define classes at module level"),
    "CAP233": BreakKind(
        "CAP233", "an object of a class written in C is made", "make it outside and pass it in"
    ),
    "CAP234": BreakKind("CAP234", "a namespace is asked for", "pass the values explicitly"),
    "CAP235": BreakKind("CAP235", "an object's address is asked for", "compare objects with `is`"),
    "CAP236": BreakKind(
        "CAP236",
        "the outside world is talked to",
        "print, log and do file work outside of the compiled function",
    ),
    "CAP237": BreakKind(
        "CAP237", "torch's global state is changed", "change it outside of the compiled function"
    ),
    "CAP238": BreakKind("CAP238", "a tensor subclass takes over", "pass plain tensors"),
    "CAP240": BreakKind(
        "CAP240",
        "a value cannot be handed back",
        "consume iterators and generators inside of the compiled function",
    ),
    "CAP241": BreakKind(
        "CAP241",
        "a break at a place that cannot be resumed",
        "move the breaking line out of the loop, handler or block, or leave it out",
    ),
}
"""Every kind of break by its code."""


_UNLISTED = BreakKind("CAP200", "the program does something that cannot be captured", "leave it out")


@dataclass(frozen=True, slots=True)
class BreakReport:
    """One graph break that happened: its code, what was met and where. ``resumed``: what follows is captured anew,
    else the function runs uncaptured."""

    code: str
    what: str
    where: UserLocation | None
    resumed: bool

    @property
    def kind(self) -> BreakKind:
        """Its entry in the catalogue."""
        return KINDS.get(self.code, _UNLISTED)

    def __str__(self) -> str:
        place = f"\n  at {self.where}" if self.where is not None else ""
        return f"[{self.code}] {self.what}{place}\n  to do: {self.kind.advice}"
