"""What tests need, of this package and of others: programs made from examples, and a recorder that needs no GPU."""

from inductor_codegen.testing.programs import ExampleGraph, Stepper

__all__ = ["ExampleGraph", "Stepper"]
