"""What tests need, of this package and of others: programs made from examples, and a recorder that needs no GPU."""

from inductor_codegen.testing.programs import (
    ExampleGraph,
    GpuGraph,
    Stepper,
    load_kernels,
    on_device,
    on_gpu_alike,
)

__all__ = ["ExampleGraph", "GpuGraph", "Stepper", "load_kernels", "on_device", "on_gpu_alike"]
