"""The forward on a CPU: 64 queries lie along vectors, so that maxima, sums and exponentials are vectors too."""

from __future__ import annotations

from inductor_codegen.codegen.cpp.attention.tiles import TileWriter, padded
from inductor_codegen.codegen.cpp.text.dtypes import stored


class ForwardWriter(TileWriter):
    """Weighted values, and the logarithms of sums of exponentials."""

    def arrays(self) -> list[str]:
        width, values = self.form.width, padded(self.form.value_width)
        return [
            f"queries[{width} * 64], held_keys[64 * {padded(width)}], held_values[64 * {values}]",
            f"scores[64 * 64], weighted[{values} * 64]",
            "top[64], total[64], base[64], factor[64], before[64], added[64]",
        ]

    def start(self) -> list[str]:
        return [
            *self.load_lanes("queries", "query", "own_head", self.form.width),
            f"for (int64_t i = 0; i < 64; ++i) top[i] = -{self.infinity}, total[i] = 0;",
            "__builtin_memset(weighted, 0, sizeof(weighted));",
        ]

    def tile(self) -> list[str]:
        form = self.form
        head = f"h / {form.group}"
        return [
            *self.load_rows("held_keys", "key", head, form.width),
            *self.load_rows("held_values", "value", head, form.value_width),
            self.product("scores", "held_keys", "queries", form.width),
            *self._evaluated(),
            *self._softmax(),
            self.add_product("weighted", "held_values", "scores", form.value_width),
        ]

    def _evaluated(self) -> list[str]:
        form = self.form
        head = [f"const {self.type} s = scores[j * 64 + i] * ({self.type}){form.scale!r};"]
        every = self.points(head, [([form.score], "scores[j * 64 + i] = {0};")])
        if self.is_plain:
            return every
        masked = f"scores[j * 64 + i] = {{1}} ? {{0}} : -{self.infinity};"
        some = self.points(head, [([form.score, form.mask], masked)])
        return [
            "if (whole) {",
            *(f"  {line}" for line in every),
            "} else {",
            *(f"  {line}" for line in some),
            "}",
        ]

    def _softmax(self) -> list[str]:
        """Scores become weights, with what came before scaled to the new maxima."""
        return [
            "for (int64_t i = 0; i < 64; ++i) before[i] = top[i], added[i] = 0;",
            "for (int64_t j = 0; j < rows; ++j)",
            "  #pragma omp simd",
            "  for (int64_t i = 0; i < 64; ++i) top[i] = maximum(scores[j * 64 + i], top[i]);",
            "int32_t scaled = 0;",
            "for (int64_t i = 0; i < 64; ++i) {",
            f"  base[i] = top[i] == -{self.infinity} ? 0 : top[i];",
            f"  factor[i] = before[i] == -{self.infinity} ? 0 : {self.exp}(before[i] - base[i]);",
            "  scaled |= factor[i] != 1;",
            "}",
            "for (int64_t j = 0; j < rows; ++j)",
            "  #pragma omp simd",
            "  for (int64_t i = 0; i < 64; ++i) {",
            f"    const {self.type} x = scores[j * 64 + i] - base[i];",
            f"    const {self.type} weight = x < {self.smallest} ? 0 : {self.exp}(x);",
            "    scores[j * 64 + i] = weight;",
            "    added[i] += weight;",
            "  }",
            "for (int64_t i = 0; i < 64; ++i) total[i] = total[i] * factor[i] + added[i];",
            "if (scaled)",
            f"  for (int64_t e = 0; e < {padded(self.form.value_width)}; ++e)",
            "    #pragma omp simd",
            "    for (int64_t i = 0; i < 64; ++i) weighted[e * 64 + i] *= factor[i];",
        ]

    def finish(self) -> list[str]:
        form = self.form
        lines = [
            "for (int64_t i = 0; i < count; ++i) {",
            f"  const bool none = top[i] == -{self.infinity};",
            f"  const {self.type} part = none ? 0 : 1 / total[i];",
        ]
        if "out" in form.tensors:
            place = f"out[{self.address(form.tensors['out'], ('b', 'own_head', 'begin + i', 'e'))}]"
            lines += [
                f"  for (int64_t e = 0; e < {form.value_width}; ++e) {{",
                f"    const {self.type} found = none ? 0 : weighted[e * 64 + i] * part;",
                f"    {place} = {stored('found', form.working, form.dtype)};",
                "  }",
            ]
        to_two = f"({self.type})1.4426950408889634"
        for role, text in (
            ("sums", f"none ? -{self.infinity} : (top[i] + {self.log}(total[i])) * {to_two}"),
            ("largest", f"top[i] * {to_two}"),
        ):
            if role in form.tensors:
                tensor = form.tensors[role]
                lines.append(f"  {role}[{self.address(tensor, ('b', 'own_head', 'begin + i'))}] = {text};")
        return [*lines, "}"]
