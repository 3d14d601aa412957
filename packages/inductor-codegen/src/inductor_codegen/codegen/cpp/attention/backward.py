"""The backward on a CPU: one kernel keeps tiles of queries, one tiles of keys and values. Both compute the weights of a
tile again, and what their gradients make of the scores.
"""

from __future__ import annotations

from inductor_codegen.codegen.cpp.attention.tiles import TileWriter, padded
from inductor_codegen.codegen.cpp.text.dtypes import stored
from inductor_codegen.codegen.cpp.text.indexing import index_text
from inductor_codegen.ir.attention.form import Scatter
from inductor_codegen.ir.index import Index
from inductor_codegen.ir.scalar import Scalar, loaded_scalars


class BackwardWriter(TileWriter):
    """Gradients of queries and operands, or of keys and values."""

    def arrays(self) -> list[str]:
        width, values = padded(self.form.width), padded(self.form.value_width)
        found = [
            f"own_a[{width} * 64], own_b[{values} * 64], other_a[64 * {width}], other_b[64 * {values}]",
            f"scores[64 * 64], grads[64 * 64], of_a[{width} * 64], sum_of[64], change_of[64]",
        ]
        return [*found, f"weights[64 * 64], of_b[{values} * 64]"] if self.of_keys else found

    def start(self) -> list[str]:
        form = self.form
        own = (
            (("own_a", "key"), ("own_b", "value"))
            if self.of_keys
            else (("own_a", "query"), ("own_b", "grad_out"))
        )
        lines = ["__builtin_memset(of_a, 0, sizeof(of_a));"]
        for (array, role), width in zip(own, (form.width, form.value_width), strict=True):
            lines += self.load_lanes(array, role, "own_head", width)
        if self.of_keys:
            return [*lines, "__builtin_memset(of_b, 0, sizeof(of_b));"]
        return [
            *lines,
            "for (int64_t i = 0; i < count; ++i) {",
            *self._sums("own_head", "begin + i", "i"),
            "}",
        ]

    def _sums(self, head: str, position: str, place: str) -> list[str]:
        """What is known of a query: the logarithm of its sum, of base e (such that one of nothing gives weights of
        zero), and what the sum takes from each weight."""
        found = self.load("sums", ("b", head, position))
        return [
            f"  const {self.type} found = {found};",
            f"  sum_of[{place}] = found == -{self.infinity} ? {self.infinity} : "
            f"found * ({self.type})0.6931471805599453;",
            f"  change_of[{place}] = {self.load('change', ('b', head, position))};",
        ]

    def tile(self) -> list[str]:
        form = self.form
        if self.of_keys:
            others = (("other_a", "query", "h"), ("other_b", "grad_out", "h"))
        else:
            head = f"h / {form.group}"
            others = (("other_a", "key", head), ("other_b", "value", head))
        lines = []
        for (array, role, head), width in zip(others, (form.width, form.value_width), strict=True):
            lines += self.load_rows(array, role, head, width)
        if self.of_keys:
            lines += ["for (int64_t j = 0; j < rows; ++j) {", *self._sums("h", "first + j", "j"), "}"]
        lines += [
            self.product("scores", "other_a", "own_a", form.width),
            self.product("grads", "other_b", "own_b", form.value_width),
        ]
        every = self._points(masked=False)
        if self.is_plain:
            lines += every
        else:
            some = self._points(masked=True)
            lines += ["if (whole) {", *(f"  {line}" for line in every), "} else {"]
            lines += [*(f"  {line}" for line in some), "}"]
        lines.append(self.add_product("of_a", "other_a", "grads", form.width))
        if self.of_keys:
            lines.append(self.add_product("of_b", "other_b", "weights", form.value_width))
        return lines

    def _points(self, masked: bool) -> list[str]:
        form = self.form
        place = "j" if self.of_keys else "i"
        assert form.joint is not None
        seen = "({1})" if masked else "true"
        head = [f"const {self.type} s = scores[j * 64 + i] * ({self.type}){form.scale!r};"]
        weigh = [
            f"const {self.type} x = {{0}} - sum_of[{place}];",
            f"const {self.type} weight = {seen} && !(x < {self.smallest}) ? {self.exp}(x) : 0;",
            *(["weights[j * 64 + i] = weight;"] if self.of_keys else []),
            f"const {self.type} arriving = weight * (grads[j * 64 + i] - change_of[{place}]);",
        ]
        keep = "grads[j * 64 + i] = {1} ? {0} : 0;" if masked else "grads[j * 64 + i] = {0};"
        scores: list[Scalar] = [form.score, form.mask] if masked else [form.score]
        owns: list[Scalar] = [form.joint, form.mask] if masked else [form.joint]
        if not form.scatters:
            return self.points(head, [(scores, "\n".join(weigh)), (owns, keep)])
        return self._with_scatters(head, "\n".join(weigh), scores, (owns, keep), masked)

    def _with_scatters(
        self, head: list[str], weigh: str, scores: list[Scalar], keep: tuple[list[Scalar], str], masked: bool
    ) -> list[str]:
        """The same, and what each point adds to gradients of operands. Threads add to one place one after the other."""
        parts: list[tuple[list[Scalar], str]] = [(scores, weigh)]
        for scatter in self.form.scatters:
            scalars = [scatter.value, *_places(scatter)]
            mask = [self.form.mask] if masked else []
            condition = f"if ({{{len(scalars)}}}) " if masked else ""
            parts.append(([*scalars, *mask], condition + self._addition(scatter, scalars)))
        ones = [scatter for scatter in self.form.scatters if not scatter.places]
        return [
            *(f"double of_{scatter.target.name} = 0;" for scatter in ones),
            *self.points(head, [*parts, keep], simd=False),
            *(f"add_at({one.target.name}, ({self.type})of_{one.target.name}, shares);" for one in ones),
        ]

    def _addition(self, scatter: Scatter, scalars: list[Scalar]) -> str:
        if not scatter.places:
            return f"of_{scatter.target.name} += {{0}};"
        texts = {id(scalar): f"{{{number}}}" for number, scalar in enumerate(scalars)}
        address = " + ".join(
            f"({index_text(place, lambda scalar: texts[id(scalar)], self.names)}) * {self.names.size(stride)}"
            for place, stride in zip(scatter.places, scatter.target.strides, strict=True)
        )
        return f"add_at({scatter.target.name} + ({address}), {{0}}, shares);"

    def finish(self) -> list[str]:
        form = self.form
        scale = f" * ({self.type}){form.scale!r}"
        roles = (
            (("grad_key", "of_a", form.width, scale), ("grad_value", "of_b", form.value_width, ""))
            if self.of_keys
            else (("grad_query", "of_a", form.width, scale),)
        )
        lines = []
        for role, array, width, factor in roles:
            if role in form.tensors:
                place = self.address(form.tensors[role], ("b", "own_head", "begin + i", "e"))
                lines += [
                    "for (int64_t i = 0; i < count; ++i)",
                    f"  for (int64_t e = 0; e < {width}; ++e) {{",
                    f"    const {self.type} found = {array}[e * 64 + i]{factor};",
                    f"    {role}[{place}] = {stored('found', form.working, form.dtype)};",
                    "  }",
                ]
        return lines


def _places(scatter: Scatter) -> list[Scalar]:
    return [scalar for place in scatter.places for scalar in _loaded(place)]


def _loaded(place: Index) -> list[Scalar]:
    return list(loaded_scalars(place))
