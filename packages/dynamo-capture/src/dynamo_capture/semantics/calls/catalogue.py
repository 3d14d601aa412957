"""The modules that fill the tables of calls: what each kind of call means is declared where it stands."""

from dynamo_capture.semantics import messages  # noqa: F401
from dynamo_capture.semantics.calls.builtins import (  # noqa: F401
    class_checks,
    constructors,
    extremes,
    functions,
    methods,
    new,
    new_classes,
    reversing,
    sets_and_dicts,
)
from dynamo_capture.semantics.calls.library import (  # noqa: F401
    copying,
    handled_exceptions,
    introspection,
    iterators,
    mathematics,
    standard_library,
)
from dynamo_capture.semantics.calls.torch_calls import (  # noqa: F401
    distributed_tensors,
    nested,
    process_groups,
    tensor_makers,
    torch_functions,
    wrappers,
)
from dynamo_capture.semantics.modes import contexts, devices, modes, patched_options  # noqa: F401
from dynamo_capture.semantics.numbers import torch_sizes  # noqa: F401
from dynamo_capture.semantics.random_numbers import choosing, python_generator  # noqa: F401
from dynamo_capture.semantics.regions import (  # noqa: F401
    attention,
    autograd_function,
    checkpoint,
    higher_order,
)
from dynamo_capture.semantics.regions.steered import control_flow, scans  # noqa: F401
from dynamo_capture.semantics.regions.transforms import dual_levels, forward, reverse, vmap  # noqa: F401
from dynamo_capture.semantics.tensor_subclasses import asking_functions  # noqa: F401
