"""Programs about memory: views, aliases, writes, ``out=``, overlapping inputs, edge values, indices, at several sizes.

A statement is drawn as text and tried on the first call's arguments: one that raises is mostly drawn again, so that
programs get somewhere; some keep it, since exceptions must be those of eager too.
"""

from __future__ import annotations

import contextlib
import re
import warnings
from random import Random
from typing import Any

import torch
from driver import Comparing, main, module_of
from tensor_statements import (
    BINARY,
    DTYPES,
    FLOATS,
    FORMS,
    FRESH,
    INDEXING,
    INDICES,
    INTEGERS,
    LAYOUTS,
    MADE,
    OUTS,
    PAIRS,
    PREAMBLE,
    QUESTIONS,
    RELATIONS,
    SET_ITEMS,
    SIZES,
    UNARY,
    VIEWS,
    WRITES,
)

_SINGLE_VIEWS = tuple(view for view in VIEWS if not view.startswith(("split", "unbind", "chunk")))
"""For programs with gradients: what is read of one of several views raises in eager if its base was written to, and a
graph that does not read it further does not (docs/soundness.md)."""
_OF_CONTENT = re.compile(
    "out of (range|bounds|data bounds)|index|indices|class values|zerodivision", re.IGNORECASE
)
_PREAMBLE = compile(PREAMBLE, "<preamble>", "exec")


class Drawing:
    """One program while it is drawn: its lines, the names in it, and what they are for the first call's arguments."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.sizes = random.choice(SIZES)
        self.lines: list[str] = []
        self.names = ["x", "y"]
        self.made = 0
        self.trained = False
        self.state: dict[str, Any] = {"log": []}
        exec(_PREAMBLE, self.state)
        self.given = self._valid_arguments()
        values = self._evaluated(self.given[0])
        self.state.update(zip(("x", "y", "i"), values, strict=True))

    def _valid_arguments(self) -> list[tuple[str, str, str]]:
        while True:
            given = self._arguments()
            with contextlib.suppress(Exception):
                for call in given:
                    self._evaluated(call)
                return given

    def _evaluated(self, call: tuple[str, str, str]) -> Any:
        return eval(f"({', '.join(call)})", self.state)

    def _content(self, dtype: str, size: tuple[int, ...]) -> str:
        count = 1
        for extent in size:
            count *= extent
        pool = (
            FLOATS
            if "float" in dtype
            else INTEGERS
            if dtype in ("torch.int64", "torch.int32")
            else ("0", "1", "2", "255")
        )
        if self.random.random() < 0.7 or dtype == "torch.bool":
            pool = (
                ("0", "1", "2", "3", "-1") if "uint8" not in dtype and dtype != "torch.bool" else ("0", "1")
            )
        numbers = [self.random.choice(pool) for _ in range(max(1, count))]
        return f"of([{', '.join(numbers)}], {size}, {dtype})"

    def _arguments(self) -> list[tuple[str, str, str]]:
        """For each call the texts of the arguments ``x``, ``y`` and ``i``."""
        random = self.random
        dtype = random.choice(DTYPES) if random.random() < 0.5 else "torch.float32"
        other = random.choice(DTYPES) if random.random() < 0.4 else dtype
        layouts = (
            [random.choice(LAYOUTS) for _ in range(3)]
            if random.random() < 0.5
            else [random.choice(LAYOUTS)] * 3
        )
        trained = "float" in dtype and random.random() < 0.4
        self.trained = trained
        relation = random.choice(RELATIONS)
        relations = [relation] * 3 if random.random() < 0.7 else [random.choice(RELATIONS) for _ in range(3)]
        calls = []
        for size, layout, relation in zip(self.sizes, layouts, relations, strict=True):
            x = layout.format(self._content(dtype, size))
            if trained:
                x = f"leaf({x})"
            y = relation.format(x="x", fresh=self._content(other, size))
            index = f"torch.tensor({random.choice(INDICES)}, dtype=torch.int64)"
            calls.append((f"(x := {x})", y, index))
        return calls

    def _one(self) -> str:
        return self.random.choice(self.names[-4:] if self.random.random() < 0.6 else self.names)

    def statement(self) -> tuple[str, str | None]:
        """A statement and the name that it makes."""
        random, a, b = self.random, self._one(), self._one()
        new = f"t{self.made}"
        value = random.choice(("1", "2.5", "-1", "float('nan')", "True", f"{b}.sum()"))
        fill = {
            "self": a,
            "other": b,
            "a": a,
            "b": b,
            "index": "i",
            "value": value,
            "dtype": random.choice(DTYPES),
        }
        fill |= {"new": new, "fresh": random.choice(FRESH).format(a=a)}
        outs = [name for name in self.names if name not in (a, b)] or ["torch.empty(0)"]
        fill |= {"o": random.choice(outs), "p": random.choice(outs)}
        kind = random.choices(
            (
                "binary",
                "unary",
                "view",
                "write",
                "item",
                "form",
                "out",
                "pair",
                "index",
                "question",
                "made",
                "cast",
                "log",
                "fresh",
            ),
            (8, 8, 22, 18, 8, 3, 9, 2, 7, 6, 6, 4, 2, 5),
        )[0]
        match kind:
            case "binary":
                operator, other = random.choice(BINARY), random.choice((b, b, "2", "0", "1.5", "True"))
                if other == a and operator == "/":
                    operator = (
                        "*"  # terms of the gradient cancel out, and what is left depends on their order
                    )
                return f"{new} = {a} {operator} {other}", new
            case "unary":
                return f"{new} = {a}.{random.choice(UNARY)}", new
            case "view":
                part = random.choice(VIEWS if not self.trained else _SINGLE_VIEWS).format(**fill)
                return f"{new} = {a}{part}" if part.startswith("[") else f"{new} = {a}.{part}", new
            case "write":
                return f"{a}.{random.choice(WRITES).format(**fill)}", None
            case "item":
                return f"{a}{random.choice(SET_ITEMS).format(**fill)}", None
            case "form":
                return f"{a}.{random.choice(FORMS).format(**fill)}", None
            case "out":
                text = random.choice(OUTS)
                return text.format(**fill), new if "{new}" in text else None
            case "pair":
                return random.choice(PAIRS).format(**fill), None
            case "index":
                return f"{new} = {random.choice(INDEXING).format(**fill)}", new
            case "question":
                asked = random.choice(QUESTIONS).format(**fill)
                return f"if {asked}: {a}.{random.choice(WRITES).format(**fill)}", None
            case "made":
                return f"{new} = {random.choice(MADE).format(**fill)}", new
            case "cast":
                return f"{new} = {a}.to({fill['dtype']})", new
            case "fresh":
                return f"{new} = {a} * 1", new
        return f"log.append((tuple({a}.shape), [s for n, s in zip({a}.shape, {a}.stride()) if n > 1]))", None

    def extend(self) -> None:
        """One more statement, tried on what there is."""
        raises = self.random.random() < 0.05
        for _ in range(8):
            text, new = self.statement()
            error = self._try(text)
            if error is None or raises:
                self.lines.append(text)
                if new is not None and error is None:
                    self.names.append(new)
                    self.made += 1
                return

    def _try(self, text: str) -> Exception | None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                exec(text, self.state)
            except Exception as error:
                return error
        return None

    def text(self) -> str:
        """The module."""
        returned = self.random.sample(self.names, min(len(self.names), self.random.randint(1, 4)))
        body = "\n".join(f"    {line}" for line in [*self.lines, f"return {', '.join(returned)},"])
        calls = "\n".join(f"    lambda: ({', '.join(call)})," for call in self.given)
        head = f"{PREAMBLE}\nlog = []\nWATCHED = {{'log': log}}\n"
        return f"{head}\ndef program(x, y, i):\n{body}\n\nCALLS = [\n{calls}\n]\n"


IGNORED = {
    "eager": frozenset({"own version", "all warnings"}),
    "aot_eager": frozenset({"own version", "version", "all warnings", "all strides", "refused backward"}),
    "inductor": frozenset({"own version", "version", "all warnings", "all strides", "refused backward"}),
}
"""Form changes, writes through ``out=`` and writes of a tensor to itself count otherwise in compiled graphs, as do
tensors that ``.data`` gave; a graph that raises and is run again may warn twice. A backward that
eager refuses, as a saved tensor was overwritten, may pass, or name other version numbers."""


def draw(random: Random) -> str:
    """The text of a program, drawn on a CPU; for another device none in which a kernel refuses an index, which ends the
    process there, or divides integers by 0, of which nobody says there what it gives."""
    elsewhere = torch.get_default_device().type != "cpu"
    with torch.device("cpu") if elsewhere else contextlib.nullcontext():
        while True:
            drawing = Drawing(random)
            for _ in range(random.randint(2, 8)):
                drawing.extend()
            text = drawing.text()
            if not elsewhere or not refuses_content(text):
                return text


def refuses_content(text: str) -> bool:
    """Whether a call of the program, uncompiled, raises what kernels say of an index or a division by 0."""
    made = module_of(text, "<drawn>")
    for make in made.CALLS:
        try:
            with warnings.catch_warnings(action="ignore"):
                result = made.program(*make())
                trained = [t for t in result if t.requires_grad]
                if trained:
                    sum(t.sum() for t in trained).backward()
        except Exception as error:
            if isinstance(error, IndexError) or _OF_CONTENT.search(str(error)):
                return True
    return False


if __name__ == "__main__":
    main(draw, Comparing(IGNORED, {"inductor": (1e-4, 1e-5)}, gradients={"aot_eager": (1e-4, 1e-5)}))
