"""The contract between the parts of the fxstack compiler: graphs, specs, symbols, sources, guards and backends."""

from fx_interface.python_runtime import own_builtins  # noqa: F401  (first: modules that follow get builtins of their own)

# isort: split
from typing import TYPE_CHECKING

from fx_interface.__about__ import __version__
from fx_interface.python_runtime.lazy_names import lazy_names

if TYPE_CHECKING:
    from fx_interface.backend import ENTRY_POINT_GROUP, INTERFACE_VERSION, Backend, CompiledGraph
    from fx_interface.errors import (
        CorruptArtifactError,
        IncompatibleInterfaceError,
        InvalidGraphError,
        PluginLoadError,
        StackError,
        UnbackedSymbolError,
        UnknownBackendError,
        UnsupportedProgramError,
        UserLocation,
    )
    from fx_interface.graph import (
        LOCATION_KEY,
        SIZE_ARITHMETIC,
        STACK_KEY,
        block_of,
        call_block,
        location_of_node,
        materialize,
        output_node,
        outputs,
        placeholders,
        set_spec,
        size_max,
        size_min,
        size_value,
        spec_of_node,
        stack_of_node,
        symbol_nodes,
    )
    from fx_interface.graph_tools.builder import GraphBuilder
    from fx_interface.graph_tools.dead_code import remove_dead_code
    from fx_interface.guard import Guard
    from fx_interface.operators import OperatorLibrary, SpecRule
    from fx_interface.plugins import BackendInfo, list_backends, load_backend
    from fx_interface.regions import REGIONS, Region, bodies_of, checkpointed, differentiable, region_of
    from fx_interface.serialization.hashing import canonical_hash
    from fx_interface.serialization.printer import print_graph, print_spec
    from fx_interface.serialization.serialize import from_data, from_json, to_data, to_json
    from fx_interface.signature import (
        DIALECT_KEY,
        SHAPE_ENV_KEY,
        SIGNATURE_KEY,
        InputDecl,
        InputKind,
        OutputDecl,
        OutputKind,
        Signature,
        signature_of,
    )
    from fx_interface.source import Scope, Source
    from fx_interface.tensor_spec import (
        SPEC_KEY,
        ObjectSpec,
        SymFloatSpec,
        SymSpec,
        TensorSpec,
        ValueSpec,
        contiguous_strides,
        spec_of,
    )
    from fx_interface.verifier import verify
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "fx_interface.backend": (
                *("ENTRY_POINT_GROUP", "INTERFACE_VERSION", "Backend", "CompiledGraph"),
            ),
            "fx_interface.graph_tools.builder": ("GraphBuilder",),
            "fx_interface.graph_tools.dead_code": ("remove_dead_code",),
            "fx_interface.errors": (
                *("CorruptArtifactError", "IncompatibleInterfaceError", "InvalidGraphError"),
                *("PluginLoadError", "StackError", "UnbackedSymbolError", "UnknownBackendError"),
                *("UnsupportedProgramError", "UserLocation"),
            ),
            "fx_interface.graph": (
                *("LOCATION_KEY", "SIZE_ARITHMETIC", "STACK_KEY", "block_of", "call_block"),
                *("location_of_node", "materialize", "output_node", "outputs", "placeholders"),
                *("set_spec", "size_max", "size_min", "size_value", "spec_of_node", "stack_of_node"),
                *("symbol_nodes",),
            ),
            "fx_interface.guard": ("Guard",),
            "fx_interface.operators": ("OperatorLibrary", "SpecRule"),
            "fx_interface.plugins": ("BackendInfo", "list_backends", "load_backend"),
            "fx_interface.regions": (
                *("REGIONS", "Region", "bodies_of", "checkpointed", "differentiable", "region_of"),
            ),
            "fx_interface.serialization.hashing": ("canonical_hash",),
            "fx_interface.serialization.printer": ("print_graph", "print_spec"),
            "fx_interface.serialization.serialize": ("from_data", "from_json", "to_data", "to_json"),
            "fx_interface.signature": (
                *("DIALECT_KEY", "SHAPE_ENV_KEY", "SIGNATURE_KEY", "InputDecl", "InputKind"),
                *("OutputDecl", "OutputKind", "Signature", "signature_of"),
            ),
            "fx_interface.source": ("Scope", "Source"),
            "fx_interface.tensor_spec": (
                *("SPEC_KEY", "ObjectSpec", "SymFloatSpec", "SymSpec", "TensorSpec", "ValueSpec"),
                *("contiguous_strides", "spec_of"),
            ),
            "fx_interface.verifier": ("verify",),
        },
    )

__all__ = [
    "Backend",
    "BackendInfo",
    "CompiledGraph",
    "CorruptArtifactError",
    "DIALECT_KEY",
    "ENTRY_POINT_GROUP",
    "GraphBuilder",
    "Guard",
    "INTERFACE_VERSION",
    "IncompatibleInterfaceError",
    "InputDecl",
    "InputKind",
    "InvalidGraphError",
    "LOCATION_KEY",
    "ObjectSpec",
    "OperatorLibrary",
    "OutputDecl",
    "OutputKind",
    "REGIONS",
    "Region",
    "PluginLoadError",
    "SHAPE_ENV_KEY",
    "SIGNATURE_KEY",
    "SIZE_ARITHMETIC",
    "SPEC_KEY",
    "STACK_KEY",
    "Scope",
    "Signature",
    "Source",
    "SpecRule",
    "StackError",
    "SymFloatSpec",
    "SymSpec",
    "TensorSpec",
    "UnbackedSymbolError",
    "UnknownBackendError",
    "UnsupportedProgramError",
    "UserLocation",
    "ValueSpec",
    "__version__",
    "block_of",
    "bodies_of",
    "call_block",
    "canonical_hash",
    "checkpointed",
    "contiguous_strides",
    "differentiable",
    "from_data",
    "from_json",
    "list_backends",
    "load_backend",
    "location_of_node",
    "materialize",
    "output_node",
    "outputs",
    "placeholders",
    "print_graph",
    "print_spec",
    "region_of",
    "remove_dead_code",
    "set_spec",
    "signature_of",
    "size_max",
    "size_min",
    "size_value",
    "spec_of",
    "spec_of_node",
    "stack_of_node",
    "symbol_nodes",
    "to_data",
    "to_json",
    "verify",
]
