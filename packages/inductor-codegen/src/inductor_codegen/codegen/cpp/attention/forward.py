"""Attention on a CPU: one share of the tiles of queries.

Tiles are transposed, with the queries along vectors: maxima, sums and exponentials of 64 queries are vectors too, and
keys and values are read as they lie in memory. All arrays are on the stack.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from fx_interface.symbols import IntLike
from inductor_codegen.codegen.cpp.text.dtypes import COMPUTED, loaded, stored
from inductor_codegen.codegen.cpp.text.names import Names
from inductor_codegen.codegen.cpp.text.scope import Scope, conditions
from inductor_codegen.ir.attention.form import (
    CPU_TILE,
    SCORE,
    AttentionForm,
    AttentionKernel,
    BlockLists,
    Strided,
)
from inductor_codegen.ir.scalar import Constant, Kept, Scalar
from inductor_codegen.ir.traverse import postorder


def emit_attention(kernel: AttentionKernel, head: str, parameters: Sequence[str]) -> str:
    """The C++ function of a kernel."""
    writer = ForwardWriter(kernel)
    body = writer.write()
    lines = [
        *(f"// {comment}" for comment in kernel.comments),
        head,
        *(f"  {line}" for line in parameters),
        *(f"  {line}" for line in writer.names.declarations()),
        *body,
        "  return bad;",
        "}",
    ]
    return "\n".join(lines) + "\n"


class ForwardWriter:
    """The text of one kernel."""

    def __init__(self, kernel: AttentionKernel) -> None:
        form: AttentionForm = kernel.form
        self.kernel, self.form = kernel, form
        self.names = Names()
        self.type = COMPUTED[form.working]
        self.suffix = "" if form.working is torch.float64 else "f"
        self.exp = "wide_exp" if form.working is torch.float64 else "single_exp"
        self.log = f"wide_log{self.suffix}"
        self.smallest = "-700.0" if form.working is torch.float64 else "-87.0f"
        self.infinity = f"__builtin_inf{self.suffix}()"
        self.values = -(-form.value_width // 4) * 4

    def write(self) -> list[str]:
        """The body."""
        form, size = self.form, self.names.size
        tiles = size(self.kernel.outer[0].extent)
        block = form.block_size[0] if form.block_size else CPU_TILE
        per_block = -(-block // CPU_TILE) if block % CPU_TILE else 0
        heads = f"({tiles}) / ({size(form.batch)} * {form.heads})"
        lines = [
            f"if (shares == 0) return {tiles} > 1;",
            "int32_t bad = 0;",
            f"const int64_t tiles = {tiles}, length = {size(form.queries)}, keys = {size(form.keys)};",
            f"const int64_t along = tiles > 0 ? {heads} : 1;",
            f"alignas(64) {self.type} queries[{form.width} * 64], held_keys[64 * {form.width}];",
            f"alignas(64) {self.type} held_values[64 * {self.values}], scores[64 * 64], weighted[{self.values} * 64];",
            f"alignas(64) {self.type} top[64], total[64], base[64], factor[64];",
            "for (int64_t tile = tiles * share / shares; tile < tiles * (share + 1) / shares; ++tile) {",
            f"  const int64_t h = tile / along % {form.heads}, b = tile / along / {form.heads}, at = tile % along;",
            f"  const int64_t hk = h / {form.group};",
        ]
        if per_block:
            lines += [
                f"  const int64_t begin = at / {per_block} * {block} + at % {per_block} * 64;",
                f"  const int64_t stop = size_min(length, (at / {per_block} + 1) * {block});",
            ]
        else:
            lines += ["  const int64_t begin = at * 64, stop = length;"]
        lines += [
            "  const int64_t rows = size_min(64, stop - begin);",
            "  if (rows <= 0) continue;",
            *self._start(),
            "  auto tile_of_keys = [&](int64_t first, int64_t count, bool whole) __attribute__((noinline)) {",
            *(f"    {line}" for line in self._tile()),
            "  };",
            *self._over_keys(block),
            *self._finish(),
            "}",
        ]
        return [f"  {line}" for line in lines]

    def _start(self) -> list[str]:
        query = self.form.tensors["query"]
        return [
            f"  for (int64_t e = 0; e < {self.form.width}; ++e)",
            "    for (int64_t i = 0; i < 64; ++i)",
            f"      queries[e * 64 + i] = i < rows ? {self._load(query, ('b', 'h', 'begin + i', 'e'))} : 0;",
            "  for (int64_t i = 0; i < 64; ++i) {",
            f"    top[i] = -{self.infinity};",
            "    total[i] = 0;",
            "  }",
            f"  __builtin_memset(weighted, 0, sizeof(weighted[0]) * {self.values} * 64);",
        ]

    def _load(self, tensor: Strided, index: Sequence[str]) -> str:
        dtype = next(p.dtype for p in self.kernel.buffers if p.name == tensor.name)
        return loaded(f"{tensor.name}[{self._address(tensor, index)}]", dtype)

    def _address(self, tensor: Strided, index: Sequence[str]) -> str:
        parts = []
        for text, stride in zip(index, tensor.strides, strict=True):
            if stride == 1:
                parts.append(f"({text})")
            elif text != "0" and stride != 0:
                parts.append(f"({text}) * {self._factor(stride)}")
        return " + ".join(parts) or "0"

    def _factor(self, stride: IntLike) -> str:
        return f"({self.names.size(stride)})"

    def _over_keys(self, block: int) -> list[str]:
        form = self.form
        if form.block_size is None:
            return self._blocks("0", "keys", "false")
        lines = [f"  const int64_t row = begin / {block};"]
        for lists, whole in ((form.partial, "false"), (form.full, "true")):
            if lists is not None:
                lines += self._listed(lists, form.block_size[1], whole)
        return lines

    def _listed(self, lists: BlockLists, block: int, whole: str) -> list[str]:
        first = [
            "b" if lists.counts.sizes[0] != 1 else "0",
            "h" if lists.counts.sizes[1] != 1 else "0",
            "row",
        ]
        counts, indices = self._address(lists.counts, first), self._address(lists.indices, [*first, "n"])
        width = self.names.size(lists.indices.sizes[3])
        return [
            f"  if (row < {self.names.size(lists.counts.sizes[2])}) {{",
            f"    const int64_t count = size_min({lists.counts.name}[{counts}], {width});",
            "    for (int64_t n = 0; n < count; ++n) {",
            f"      const int64_t from = (int64_t){lists.indices.name}[{indices}] * {block};",
            *(f"    {line}" for line in self._blocks("from", f"size_min(keys, from + {block})", whole)),
            "    }",
            "  }",
        ]

    def _blocks(self, first: str, last: str, whole: str) -> list[str]:
        return [
            f"  for (int64_t k0 = {first}, end = {last}; k0 >= 0 && k0 < end; k0 += 64)",
            f"    tile_of_keys(k0, size_min(64, end - k0), {whole});",
        ]

    def _tile(self) -> list[str]:
        form = self.form
        key, value = form.tensors["key"], form.tensors["value"]
        return [
            "const int64_t padded = (count + 3) / 4 * 4;",
            "for (int64_t j = 0; j < padded; ++j) {",
            f"  for (int64_t e = 0; e < {form.width}; ++e)",
            f"    held_keys[j * {form.width} + e] = j < count ? "
            f"{self._load(key, ('b', 'hk', 'first + j', 'e'))} : 0;",
            "}",
            "for (int64_t j = 0; j < count; ++j) {",
            f"  for (int64_t e = 0; e < {form.value_width}; ++e)",
            f"    held_values[j * {self.values} + e] = {self._load(value, ('b', 'hk', 'first + j', 'e'))};",
            *(
                [
                    f"  for (int64_t e = {form.value_width}; e < {self.values}; ++e)",
                    f"    held_values[j * {self.values} + e] = 0;",
                ]
                if self.values != form.value_width
                else []
            ),
            "}",
            f"tile_product<{self.type}, false>(scores, held_keys, padded, {form.width}, 1, queries, {form.width});",
            *self._evaluated(),
            *self._softmax(),
            f"tile_product<{self.type}, true>(weighted, held_values, {self.values}, 1, {self.values}, scores, count);",
        ]

    def _evaluated(self) -> list[str]:
        if isinstance(self.form.mask, Constant) and self.form.mask.value is True:
            return self.points([self.form.score], "scores[j * 64 + i] = {0};")
        masked = f"scores[j * 64 + i] = {{1}} ? {{0}} : -{self.infinity};"
        return [
            "if (whole) {",
            *(f"  {line}" for line in self.points([self.form.score], "scores[j * 64 + i] = {0};")),
            "} else {",
            *(f"  {line}" for line in self.points([self.form.score, self.form.mask], masked)),
            "}",
        ]

    def points(self, results: Sequence[Scalar], store: str) -> list[str]:
        """Loops over the points of a tile that compute ``results``."""
        scope = Scope(None, self.names, conditions(results))
        for node in postorder(results):
            if isinstance(node, Kept) and node.slot == SCORE:
                scope.bind(node, "s")
        scope.compute(results)
        used = any("bad" in line for line in scope.lines)
        scale = f"({self.type}){self.form.scale!r}"
        return [
            "for (int64_t j = 0; j < count; ++j) {",
            "  const int64_t k = first + j;",
            f"  #pragma omp simd{' reduction(|:bad)' if used else ''}",
            "  for (int64_t i = 0; i < rows; ++i) {",
            "    const int64_t q = begin + i;",
            f"    const {self.type} s = scores[j * 64 + i] * {scale};",
            *(f"    {line}" for line in scope.lines),
            f"    {store.format(*map(scope.name, results))}",
            "  }",
            "}",
        ]

    def _softmax(self) -> list[str]:
        """Scores become weights, with what came before scaled to the new maxima."""
        return [
            f"alignas(64) {self.type} before[64], added[64];",
            "for (int64_t i = 0; i < 64; ++i) before[i] = top[i], added[i] = 0;",
            "for (int64_t j = 0; j < count; ++j)",
            "  #pragma omp simd",
            "  for (int64_t i = 0; i < 64; ++i) top[i] = maximum(scores[j * 64 + i], top[i]);",
            "int32_t scaled = 0;",
            "for (int64_t i = 0; i < 64; ++i) {",
            f"  base[i] = top[i] == -{self.infinity} ? 0 : top[i];",
            f"  factor[i] = before[i] == -{self.infinity} ? 0 : {self.exp}(before[i] - base[i]);",
            "  scaled |= factor[i] != 1;",
            "}",
            "for (int64_t j = 0; j < count; ++j)",
            "  #pragma omp simd",
            "  for (int64_t i = 0; i < 64; ++i) {",
            f"    const {self.type} x = scores[j * 64 + i] - base[i];",
            f"    const {self.type} weight = x < {self.smallest} ? 0 : {self.exp}(x);",
            "    scores[j * 64 + i] = weight;",
            "    added[i] += weight;",
            "  }",
            "for (int64_t i = 0; i < 64; ++i) total[i] = total[i] * factor[i] + added[i];",
            "if (scaled)",
            f"  for (int64_t e = 0; e < {self.values}; ++e)",
            "    #pragma omp simd",
            "    for (int64_t i = 0; i < 64; ++i) weighted[e * 64 + i] *= factor[i];",
        ]

    def _finish(self) -> list[str]:
        form = self.form
        lines = [
            "  for (int64_t i = 0; i < rows; ++i) {",
            f"    const bool none = top[i] == -{self.infinity};",
            f"    const {self.type} share_of = none ? 0 : 1 / total[i];",
        ]
        if "out" in form.tensors:
            place = f"out[{self._address(form.tensors['out'], ('b', 'h', 'begin + i', 'e'))}]"
            value = stored("found", form.working, form.dtype)
            lines += [
                f"    for (int64_t e = 0; e < {form.value_width}; ++e) {{",
                f"      const {self.type} found = none ? 0 : weighted[e * 64 + i] * share_of;",
                f"      {place} = {value};",
                "    }",
            ]
        to_two = f"({self.type})1.4426950408889634"
        for role, text in (
            ("sums", f"none ? -{self.infinity} : (top[i] + {self.log}(total[i])) * {to_two}"),
            ("largest", f"top[i] * {to_two}"),
        ):
            if role in form.tensors:
                tensor = form.tensors[role]
                lines.append(f"    {tensor.name}[{self._address(tensor, ('b', 'h', 'begin + i'))}] = {text};")
        return [*lines, "  }"]
