"""A reduction of everything to one result: slices that threads share, joined in order."""

from __future__ import annotations

from inductor_codegen.codegen.cpp.loops.rows import RowWriter
from inductor_codegen.codegen.cpp.text.reductions import Accumulator
from inductor_codegen.codegen.cpp.text.scope import Scope

SLICES = 64
"""Parts of a reduction of everything, so that its result does not depend on the number of threads."""


class SliceWriter(RowWriter):
    """A kernel without outer loops whose own threads have results to join."""

    def write(self) -> list[str]:
        """The lines of the body."""
        step = self.kernel.passes[0]
        accumulators = self._accumulators_of(step)
        extent = self.names.size(self.kernel.inner[0].extent)
        for a in accumulators:
            self.add(f"{a.total_type} slices_{a.name}[{SLICES}];")
            if a.tracks_nan:
                self.add(f"int32_t slices_{a.name}_nan[{SLICES}];")
        self.add(f"const int64_t length = ({extent} + {SLICES - 1}) / {SLICES};")
        clauses = " ".join(
            [
                f"num_threads(shares) if(shares > 1 && {self._is_worth_sharing()}) schedule(static)",
                *self._bad(),
            ]
        )
        self.add(f"#pragma omp parallel for {clauses}")
        self.open(f"for (int64_t slice = 0; slice < {SLICES}; ++slice)")
        self.add(
            f"const int64_t begin = slice * length < {extent} ? slice * length : {extent};",
            f"const int64_t end = begin + length < {extent} ? begin + length : {extent};",
        )
        for a in accumulators:
            self.add(*a.declarations())
        self._pass_loops(step, Scope(None, self.names, {}), bounds=("begin", "end"))
        for a in accumulators:
            self.add(f"slices_{a.name}[slice] = {a.name};")
            if a.tracks_nan:
                self.add(f"slices_{a.name}_nan[slice] = {a.name}_nan;")
        self.close()
        self._join_slices(accumulators)
        row = Scope(None, self.names, {})
        self._bind_totals(accumulators)
        self._row_stores(step, row)
        return self.lines

    def _join_slices(self, accumulators: list[Accumulator]) -> None:
        for a in accumulators:
            self.add(*a.declarations())
        self.open(f"for (int64_t slice = 0; slice < {SLICES}; ++slice)")
        for a in accumulators:
            if a.tracks_nan:
                self.add(f"{a.name}_nan |= slices_{a.name}_nan[slice];")
                a_join = a.join(f"slices_{a.name}", "[slice]")[:1]
            else:
                a_join = a.join(f"slices_{a.name}", "[slice]")
            self.add(*a_join)
        self.close()
