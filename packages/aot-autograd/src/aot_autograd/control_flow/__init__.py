"""Programs that data steer: compiled in parts, between which the branches and loops are taken when they run."""

from aot_autograd.control_flow.walk import PartCompiler, compile_in_parts, has_parts

__all__ = ["PartCompiler", "compile_in_parts", "has_parts"]
