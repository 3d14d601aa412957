"""The backward: one kernel keeps tiles of queries and gives their gradients, one keeps tiles of keys and values.

Scores are computed again from queries, keys and the logarithms of sums that the forward has kept.
"""

from __future__ import annotations

from inductor_codegen.codegen.triton.attention.points import varying
from inductor_codegen.codegen.triton.attention.tiles import LOG2_E, TileWriter, power
from inductor_codegen.codegen.triton.indices import index_text
from inductor_codegen.ir.attention.form import Scatter
from inductor_codegen.ir.index import Index, LoopVar
from inductor_codegen.ir.scalar import loaded_scalars


class _BackwardWriter(TileWriter):
    """What both kernels compute of a tile."""

    def weights(self, product: str, sums: str, whole: bool) -> None:
        """``weight`` at each point, of the product of queries and keys, and ``seen`` where not all is."""
        form = self.form
        if form.keeps_scores:
            self.add(f"score = {product} * {form.scale * LOG2_E!r}")
        else:
            self.add(f"scaled = {product} * {form.scale!r}")
            self.add(f"score = {self.computed(self.scope('scaled'), form.score)} * {LOG2_E!r}")
        self.add(f"weight = tl.exp2(score - {sums})")
        if not whole:
            self.add(f"seen = {self.computed(self.scope(''), form.mask)}")
            self.add("weight = tl.where(seen, weight, 0.0)")

    def changes(self, arriving: str, change: str, whole: bool) -> None:
        """``grad``, the gradient of each score as it was before the program."""
        form = self.form
        self.add(f"grad = weight * ({arriving} - {change})")
        if not form.keeps_scores:
            assert form.joint is not None
            self.scatters = self.scope("scaled", "grad")
            self.add(f"own = {self.computed(self.scatters, form.joint)}")
            self.add("own = own if own.shape == grad.shape else tl.broadcast_to(own, grad.shape)")
            if not whole:
                self.add("own = tl.where(seen, own, 0.0)")
        else:
            self.add("own = grad")

    def heads(self, *pairs: tuple[str, str, str]) -> None:
        """Pointers to the first elements of heads."""
        for name, role, head in pairs:
            self.base(name, role, head)


class QueriesWriter(_BackwardWriter):
    """Gradients of queries, and of what scores read."""

    def write(self) -> None:
        """The lines of the function."""
        form = self.form
        rows = self.tiles.rows
        self.place()
        self.add("h = own_head", f"head_of_keys = h // {form.group}")
        self.heads(
            ("queries", "query", "h"),
            ("keys", "key", "head_of_keys"),
            ("values", "value", "head_of_keys"),
            ("arrived", "grad_out", "h"),
            ("sums_of_head", "sums", "h"),
            ("change_of_head", "change", "h"),
        )
        self.add(
            f"q = {self.load('queries', 'query', 'row', self.row_mask, across=False)}",
            f"arriving = {self.load('arrived', 'grad_out', 'row', self.row_mask, across=False)}",
            f"sum = {self.load('sums_of_head', 'sums', 'row', self.row_mask, across=False, flat=True)}",
            "sum = tl.where(sum == float('-inf'), float('inf'), sum)[:, None]",
            f"change_of = {self.load('change_of_head', 'change', 'row', self.row_mask, across=False, flat=True)}"
            "[:, None]",
            f"found = tl.zeros([{rows}, {power(form.width)}], tl.float32)",
        )
        parts = [
            part
            for one in form.scatters
            for part in (one.value, *(scalar for place in one.places for scalar in loaded_scalars(place)))
        ]
        for scalar in (form.score, form.mask, form.joint, *parts):
            if scalar is not None:
                self.settle(scalar)
        self.over_columns("h", self._tile)
        if "grad_query" in form.tensors:
            self.base("results", "grad_query", "h")
            self.store("results", "grad_query", f"found * {form.scale!r}")

    def _tile(self, whole: bool) -> None:
        self.add(
            f"k = {self.load('keys', 'key', 'column', self.column_mask, across=True)}",
            f"v = {self.load('values', 'value', 'column', self.column_mask, across=True)}",
        )
        self.weights(f"tl.dot(q, k{self.precision})", "sum", whole)
        self.changes(f"tl.dot(arriving, v{self.precision})", "change_of", whole)
        self.add(f"found = tl.dot(own.to(k.dtype), tl.trans(k), found{self.precision})")
        for scatter in self.form.scatters:
            self._scatter(scatter, whole)

    def _scatter(self, scatter: Scatter, whole: bool) -> None:
        """Add what the points of a tile give, after those that give to one place are added up."""
        scope = self.scatters
        value = self.computed(scope, scatter.value)
        address = " + ".join(
            f"({index_text(place, scope.variables, scope.value)}) * {stride}"
            for place, stride in zip(scatter.places, scatter.target.strides, strict=True)
        )
        self.add(*scope.lines)
        scope.lines.clear()
        over = {loop for place in scatter.places for loop in varying_of(place)}
        conditions = [] if self.even_rows else ["row_mask"]
        conditions += [] if self.even_columns else ["column_mask[None, :]"]
        conditions += [] if whole else ["seen"]
        target = scatter.target.name
        self.add(f"part = tl.broadcast_to({value}, grad.shape)")
        if conditions:
            self.add(f"part = tl.where({' & '.join(conditions)}, part, 0.0)")
        if self.column_loop in over:
            masked = f", {' & '.join(conditions)}" if conditions else ""
            self.add(
                f"tl.atomic_add({target} + tl.broadcast_to({address}, grad.shape), part{masked}, sem='relaxed')"
            )
        elif self.row_loop in over:
            self.add(
                f"tl.atomic_add({target} + {address}, tl.sum(part, 1)[:, None]"
                f"{'' if self.even_rows else ', row_mask'}, sem='relaxed')"
            )
        else:
            self.add(f"tl.atomic_add({target} + {address or '0'}, tl.sum(part), sem='relaxed')")


def varying_of(place: Index) -> set[LoopVar]:
    """The loops that an index varies over."""
    found = set(place.variables())
    for scalar in loaded_scalars(place):
        found |= varying(scalar)
    return found


class KeysWriter(_BackwardWriter):
    """Gradients of keys and values: for all heads of queries that share them."""

    def write(self) -> None:
        """The lines of the function. Tiles are transposed: keys down, queries across."""
        form = self.form
        rows = self.tiles.rows
        self.place()
        self.heads(("keys", "key", "own_head"), ("values", "value", "own_head"))
        self.add(
            f"k = {self.load('keys', 'key', 'row', self.row_mask, across=False)}",
            f"v = {self.load('values', 'value', 'row', self.row_mask, across=False)}",
            f"of_keys = tl.zeros([{rows}, {power(form.width)}], tl.float32)",
            f"of_values = tl.zeros([{rows}, {power(form.value_width)}], tl.float32)",
        )
        if form.group > 1:
            self.add(f"for member in range(0, {form.group}):")
            self.depth += 1
            self.add(f"h = own_head * {form.group} + member")
        else:
            self.add("h = own_head")
        self.heads(
            ("queries", "query", "h"),
            ("arrived", "grad_out", "h"),
            ("sums_of_head", "sums", "h"),
            ("change_of_head", "change", "h"),
        )
        for scalar in (form.score, form.mask, form.joint):
            if scalar is not None:
                self.settle(scalar)
        self.over_columns("h", self._tile)
        if form.group > 1:
            self.depth -= 1
        for role, name, value in (
            ("grad_key", "results", f"of_keys * {form.scale!r}"),
            ("grad_value", "results", "of_values"),
        ):
            if role in form.tensors:
                self.base(name, role, "own_head")
                self.store(name, role, value)

    def _tile(self, whole: bool) -> None:
        mask = self.column_mask
        self.add(
            f"q = {self.load('queries', 'query', 'column', mask, across=False)}",
            f"arriving = {self.load('arrived', 'grad_out', 'column', mask, across=False)}",
            f"sum = {self.load('sums_of_head', 'sums', 'column', mask, across=False, flat=True)}",
            "sum = tl.where(sum == float('-inf'), float('inf'), sum)[None, :]",
            f"change_of = {self.load('change_of_head', 'change', 'column', mask, across=False, flat=True)}[None, :]",
        )
        self.weights(f"tl.dot(k, tl.trans(q){self.precision})", "sum", whole)
        self.add(f"of_values = tl.dot(weight.to(q.dtype), arriving, of_values{self.precision})")
        self.changes(f"tl.dot(v, tl.trans(arriving){self.precision})", "change_of", whole)
        self.add(f"of_keys = tl.dot(own.to(q.dtype), q, of_keys{self.precision})")
