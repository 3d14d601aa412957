"""The forward: a program keeps a tile of queries and goes through the tiles of keys that these see."""

from __future__ import annotations

from inductor_codegen.codegen.triton.attention.tiles import LOG2_E, TileWriter, power
from inductor_codegen.codegen.triton.indices import size_text


class ForwardWriter(TileWriter):
    """Weighted values, and the logarithms of sums of exponentials."""

    def write(self) -> None:
        """The lines of the function. Scores are powers of two: those of e are scaled."""
        form = self.form
        rows, values = self.tiles.rows, power(form.value_width)
        self.place()
        self.add("h = own_head", f"head_of_keys = h // {form.group}")
        for name, role, head in (
            ("queries", "query", "h"),
            ("keys", "key", "head_of_keys"),
            ("values", "value", "head_of_keys"),
        ):
            self.base(name, role, head)
        self.add(
            f"q = {self.load('queries', 'query', 'row', self.row_mask, across=False)}",
            f"top = tl.full([{rows}], float('-inf'), tl.float32)",
            f"total = tl.zeros([{rows}], tl.float32)",
            f"found = tl.zeros([{rows}, {values}], tl.float32)",
        )
        self._before_loops()
        self.over_columns("h", self._tile)
        self._results()

    def _before_loops(self) -> None:
        """What does not vary with the keys: whoever computes it first would do so inside of a loop."""
        for scalar in (self.form.score, self.form.mask):
            self.settle(scalar)

    def _tile(self, whole: bool) -> None:
        form = self.form
        self.add(
            f"k = {self.load('keys', 'key', 'column', self.column_mask, across=True)}",
            f"product = tl.dot(q, k{self.precision})",
        )
        checked = not whole or not form.keeps_scores
        if form.keeps_scores:
            self.add(f"score = product * {form.scale * LOG2_E!r}")
        else:
            self.add(f"scaled = product * {form.scale!r}")
            scope = self.scope("scaled")
            self.add(f"score = {self.computed(scope, form.score)} * {LOG2_E!r}")
        if not whole:
            seen = self.computed(self.scope(""), form.mask)
            self.add(f"score = tl.where({seen}, score, float('-inf'))")
        if not self.even_columns:
            self.add("score = tl.where(column_mask[None, :], score, float('-inf'))")
        self.add("new = tl.maximum(top, tl.max(score, 1))")
        self.add("base = tl.where(new == float('-inf'), 0.0, new)" if checked else "base = new")
        self.add(
            "factor = tl.exp2(top - base)",
            "weight = tl.exp2(score - base[:, None])",
            "total = total * factor + tl.sum(weight, 1)",
            "found = found * factor[:, None]",
            f"v = {self.load('values', 'value', 'column', self.column_mask, across=False)}",
            f"found = tl.dot(weight.to(v.dtype), v, found{self.precision})",
            "top = new",
        )

    def _results(self) -> None:
        form = self.form
        self.add("none = top == float('-inf')", "total = tl.where(none, 1.0, total)")
        if "out" in form.tensors:
            self.base("results", "out", "h")
            self.store("results", "out", "found / total[:, None]")
        for role, text in (
            ("sums", "tl.where(none, float('-inf'), top + tl.log2(total))"),
            ("largest", "top"),
        ):
            if role in form.tensors:
                self.base(f"{role}_of_head", role, "h")
                address = self.offsets(form.tensors[role], "row", form.queries)
                mask = "" if self.even_rows else f", row < {size_text(form.queries)}"
                self.add(f"tl.store({role}_of_head + {address}, {text}{mask})")
