"""The text of a kernel that adds by index."""

from __future__ import annotations

from collections.abc import Sequence

from fx_interface.symbols import IntLike
from inductor_codegen.codegen.cpp.loops.threads import PARALLEL_FROM, Sharing, sharing_of, work_of
from inductor_codegen.codegen.cpp.text.dtypes import loaded, stored
from inductor_codegen.codegen.cpp.text.names import Names
from inductor_codegen.ir.scatter import INDEX, SOURCE, TARGET, ScatterForm, ScatterKernel

_UNSIGNED = {"int64_t": "uint64_t", "int32_t": "uint32_t"}


def emit_scatter(kernel: ScatterKernel, head: str, parameters: Sequence[str]) -> str:
    """The C++ function of a kernel."""
    writer = _ScatterWriter(kernel)
    body = writer.write()
    lines = [*(f"// {comment}" for comment in kernel.comments), head]
    lines += [f"  {line}" for line in (*parameters, "int32_t bad = 0;", *writer.names.declarations(), *body)]
    return "\n".join([*lines, "  return bad;", "}"]) + "\n"


class _ScatterWriter:
    def __init__(self, kernel: ScatterKernel) -> None:
        self.kernel = kernel
        self.form: ScatterForm = kernel.form
        self.names = Names()

    def write(self) -> list[str]:
        """The body: loops of the source, and the choice of a row where it is known."""
        form, loops = self.form, self.kernel.outer
        rows, shared = self.names.size(form.rows), sharing_of(self.kernel) is Sharing.CALLER
        lines = self._share(rows) if shared else []
        vector = form.depth < len(loops)
        for place in range(len(loops) + 1):
            indent = "  " * place
            if place == form.depth:
                lines += [f"{indent}{line}" for line in self._row(rows, shared, bool(place))]
            if place == len(loops):
                lines.append(f"{indent}{self._addition()}")
                break
            loop = loops[place]
            if vector and place == len(loops) - 1:
                lines.append("#pragma omp simd")
            name = loop.name
            lines.append(
                f"{indent}for (int64_t {name} = 0; {name} < {self.names.size(loop.extent)}; ++{name}) {{"
            )
        return [*lines, *("  " * place + "}" for place in reversed(range(len(loops))))]

    def _share(self, rows: str) -> list[str]:
        work = work_of(self.kernel)
        worth = "1" if isinstance(work, int) else f"{self.names.size(work)} >= {PARALLEL_FROM}"
        return [
            f"if (!shares) return {worth};",
            f"const int64_t first = {rows} * share / shares, last = {rows} * (share + 1) / shares;",
        ]

    def _row(self, rows: str, shared: bool, inside: bool) -> list[str]:
        """The row of a point; nothing is added where it is skipped or another share's. What is out of range counts as
        row 0: the result of a call that fails is seen by nobody."""
        form = self.form
        check = "wrap_index" if form.wraps else "check_index"
        lines = [f"const int64_t named = {INDEX}[{self._address(form.index)}];"]
        lines.append(f"const int64_t row = {check}(named, {rows}, bad);")
        conditions = [] if form.skipped is None else [f"named == {form.skipped}"]
        if shared:
            conditions.append("row < first || row >= last")
        leave = "continue" if inside else "return bad"
        return [*lines, f"if ({' || '.join(conditions)}) {leave};"] if conditions else lines

    def _addition(self) -> str:
        form = self.form
        target = f"{TARGET}[{self._address(form.target, f'row * {self.names.size(form.step)}')}]"
        source = f"{SOURCE}[{self._address(form.source)}]"
        kind = "int64_t" if str(form.dtype) == "torch.int64" else "int32_t"
        if not form.dtype.is_floating_point:
            word = _UNSIGNED[kind]
            return f"{target} = ({kind})(({word}){target} + ({word}){source});"
        total = f"{loaded(target, form.dtype)} + {loaded(source, form.dtype)}"
        return f"{target} = {stored(total, form.dtype, form.dtype)};"

    def _address(self, strides: Sequence[IntLike], first: str = "") -> str:
        terms = [first] if first else []
        for loop, stride in zip(self.kernel.outer, strides, strict=True):
            if isinstance(stride, int) and stride == 0:
                continue
            is_one = isinstance(stride, int) and stride == 1
            terms.append(loop.name if is_one else f"{self.names.size(stride)} * {loop.name}")
        return " + ".join(terms) or "0"
