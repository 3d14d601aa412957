"""The rules of the loop IR, checked: what ``ir.kernel`` says of a kernel holds."""

from __future__ import annotations

from collections.abc import Iterable

from fx_interface.errors import InvalidGraphError
from inductor_codegen.ir.gpu.scan import GpuScanKernel
from inductor_codegen.ir.index import LoopVar
from inductor_codegen.ir.kernel import Accumulate, BufferParameter, Keep, Kernel, Statement, Store, Vector
from inductor_codegen.ir.scalar import FloatValue, Kept, Load, Scalar, Total
from inductor_codegen.ir.scan import ScanKernel
from inductor_codegen.ir.scatter import INDEX, SOURCE, TARGET, ScatterKernel
from inductor_codegen.ir.traverse import indices_of, postorder, roots_of, statement_indices

CODE = "IND120"


def verify_kernel(kernel: Kernel) -> None:
    """InvalidGraphError IND120 with the first broken rule."""
    verifier = _Verifier(kernel)
    if isinstance(kernel, ScatterKernel):
        verifier.scatter(kernel)
    elif isinstance(kernel, ScanKernel):
        verifier.scan(kernel)
    elif isinstance(kernel, GpuScanKernel):
        verifier.gpu_scan(kernel)
    else:
        verifier.run()


class _Verifier:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.buffers = {p.name: p for p in kernel.parameters if isinstance(p, BufferParameter)}
        self.names = {parameter.name for parameter in kernel.parameters}
        self.loops = {*kernel.outer, *kernel.inner}
        self.totals: set[int] = set()
        self.kept: set[int] = set()

    def require(self, holds: bool, rule: str) -> None:
        if not holds:
            raise InvalidGraphError(CODE, f"kernel {self.kernel.name}: {rule}")

    def run(self) -> None:
        kernel = self.kernel
        self.require(len(self.names) == len(kernel.parameters), "two parameters have one name")
        self.require(len({loop.name for loop in self.loops}) == len(self.loops), "two loops have one name")
        self.require(bool(kernel.passes), "there is no pass")
        reduces = any(isinstance(s, Accumulate) for step in kernel.passes for s in step.points)
        self.require(reduces or len(kernel.passes) == 1, "several passes, but nothing is reduced")
        rows = bool(kernel.outer) and (reduces or any(step.row for step in kernel.passes))
        self.require(kernel.vector is Vector.INNER or rows, "no rows side by side")
        for step in kernel.passes:
            self.statements(step.points, self.loops)
            self.define(step.points)
            self.statements(step.row, set(kernel.outer))

    def scatter(self, kernel: ScatterKernel) -> None:
        """A kernel that adds by index: its parameters, and a stride for each of its loops."""
        form, loops = kernel.form, len(kernel.outer)
        self.require(
            list(self.buffers) == [SOURCE, INDEX, TARGET], "its buffers are not source, index and target"
        )
        strides = (form.source, form.index, form.target)
        self.require(all(len(each) == loops for each in strides), "its strides are not those of its loops")
        self.require(not kernel.passes and not kernel.inner, "it has passes")

    def scan(self, kernel: ScanKernel) -> None:
        """A kernel of running totals: its parameters, rows, and a stride for each of its loops."""
        form, loops = kernel.form, len(kernel.outer) + 1
        self.require(list(self.buffers) == [SOURCE, TARGET], "its buffers are not source and target")
        strides = (form.source, form.target)
        self.require(all(len(each) == loops for each in strides), "its strides are not those of its loops")
        self.require(not kernel.passes and len(kernel.inner) == 1, "it has passes, or not one inner loop")
        self.require(bool(kernel.outer), "it has one row")

    def gpu_scan(self, kernel: GpuScanKernel) -> None:
        """The same of a GPU's, which has one loop, over its programs."""
        form = kernel.form
        self.require(list(self.buffers) == [SOURCE, TARGET], "its buffers are not source and target")
        strides = (form.source, form.target)
        self.require(
            all(len(each) == len(form.sizes) for each in strides), "its strides are not those of its sizes"
        )
        self.require(not kernel.passes and not kernel.inner, "it has passes")
        self.require([loop.extent for loop in kernel.outer] == [form.programs], "it does not cover its rows")

    def define(self, statements: Iterable[Statement]) -> None:
        for statement in statements:
            match statement:
                case Accumulate(accumulator):
                    self.require(accumulator not in self.totals, f"total{accumulator} is made twice")
                    self.totals.add(accumulator)
                case Keep(slot):
                    self.require(slot not in self.kept, f"kept{slot} is made twice")
                    self.kept.add(slot)

    def statements(self, statements: Iterable[Statement], loops: set[LoopVar]) -> None:
        for statement in statements:
            for index in statement_indices(statement):
                self.loops_known(index.variables(), loops)
            if isinstance(statement, Store):
                self.require(statement.buffer in self.buffers, f"{statement.buffer} is no buffer parameter")
            for node in postorder(roots_of(statement)):
                self.scalar(node, loops)

    def scalar(self, node: Scalar, loops: set[LoopVar]) -> None:
        for index in indices_of(node):
            self.loops_known(index.variables(), loops)
        match node:
            case Load(buffer, _, dtype):
                self.require(buffer in self.buffers, f"{buffer} is no buffer parameter")
                self.require(self.buffers[buffer].dtype == dtype, f"{buffer} is loaded as {dtype}")
            case Total(accumulator):
                self.require(
                    accumulator in self.totals, f"total{accumulator} is used before its pass is over"
                )
            case Kept(slot):
                self.require(slot in self.kept, f"kept{slot} is used before its pass is over")
            case FloatValue(name):
                self.require(name in self.names, f"{name} is no parameter")

    def loops_known(self, used: Iterable[LoopVar], loops: set[LoopVar]) -> None:
        for loop in used:
            self.require(loop in loops, f"loop {loop.name} < {loop.extent} is not around its use")
