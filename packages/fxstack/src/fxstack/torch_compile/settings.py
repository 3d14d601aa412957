"""Flags of ``torch._dynamo.config`` and ``torch.compiler.config``, and variables of the environment.

A flag counts where the program has given it another value than the one that it comes with; torch's compiler is never
loaded to look.
"""

from __future__ import annotations

from fxstack.torch_compile.entry import ABSENT, ACCEPTED, COUNTERPART, DONE, Entry

SETTINGS = (
    Entry("assume_static_by_default", DONE, "False: `dynamic=None` is `dynamic=True`"),
    Entry("automatic_dynamic_shapes", DONE, "False: `dynamic=None` is `dynamic=False`"),
    Entry("specialize_int", DONE, "True: integers are constants, another one is compiled on its own"),
    Entry("specialize_float", DONE, "True: floats are constants"),
    Entry("force_parameter_static_shapes", DONE, "False: parameters' sizes may become symbolic"),
    Entry("recompile_limit", DONE, "as the argument of `compile`; `cache_size_limit` is the same flag"),
    Entry("fail_on_recompile_limit_hit", DONE, "True: `CaptureError` CAP252 where the limit is reached"),
    Entry("error_on_recompile", DONE, "True: as the stance `fail_on_recompile`"),
    Entry("suppress_errors", DONE, "True: where a backend raises, the function runs uncompiled"),
    Entry("disable", DONE, "True: nothing more is compiled"),
    Entry("ignore_logging_functions", DONE, "calls of these are left out of what is compiled"),
    Entry("ignore_logger_methods", DONE, "calls of these are left out of what is compiled"),
    Entry("capture_scalar_outputs", DONE, "always so: numbers read from tensors are symbols of the graph"),
    Entry("capture_dynamic_output_shape_ops", DONE, "always so: sizes that depend on data are symbols"),
    Entry(
        "allow_unspec_int_on_nn_module", DONE, "always so: a module's integer that varies becomes symbolic"
    ),
    Entry(
        "force_nn_module_property_static_shapes", DONE, "False is always so: buffers that vary are followed"
    ),
    Entry("guard_nn_modules", DONE, "always so: what is read of a module is guarded"),
    Entry("allow_rnn", DONE, "always so: recurrent layers are captured"),
    Entry("capture_func_transforms", DONE, "always so: `torch.func` inside is captured"),
    Entry("capture_autograd_function", DONE, "always so: `torch.autograd.Function` inside is captured"),
    Entry("trace_numpy", DONE, "always so: NumPy inside is captured"),
    Entry("capture_sparse_compute", DONE, "always so, where a kernel's rule is known; else a graph break"),
    Entry(
        "rewrite_assert_with_torch_assert",
        DONE,
        "always so, but for an assertion on a float that `item()` has read: a graph break",
    ),
    Entry("allow_ignore_mark_dynamic", DONE, "always so: a marked size that has to be a constant is one"),
    Entry(
        "reorderable_logging_functions",
        DONE,
        "always so for `print` and what Python code does: effects keep their order",
    ),
    Entry("accumulated_recompile_limit", ACCEPTED, "always 256 (or `recompile_limit`, if that is more)"),
    Entry(
        "minimum_call_count",
        ACCEPTED,
        "the first call compiles; the stance `eager_then_compile` waits for the second",
    ),
    Entry("optimize_ddp", ACCEPTED, "a graph is not split at gradient buckets"),
    Entry(
        "compiled_autograd",
        ACCEPTED,
        "a graph's backward is compiled with it; what is between graphs is autograd's",
    ),
    Entry("prepare_freezing", ACCEPTED, "parameters stay inputs"),
    Entry("nested_graph_breaks", DONE, "always so: a break in an inner function splits the outer one"),
    Entry(
        "error_on_nested_fx_trace",
        DONE,
        "False is always so: under `torch.fx.symbolic_trace` the function runs as it is",
    ),
    Entry("inline_inbuilt_nn_modules", DONE, "always so"),
    Entry("numpy_default_float", ACCEPTED, "NumPy's own default, float64"),
    Entry("numpy_default_complex", ACCEPTED, "NumPy's own default, complex128"),
    Entry("numpy_default_int", ACCEPTED, "NumPy's own default, int64"),
    Entry("verbose", COUNTERPART, "the logger `dynamo_capture` at DEBUG"),
    Entry(
        "report_guard_failures",
        COUNTERPART,
        "`fxstack.explain_recompiles`, the logger `recompiles` below `dynamo_capture`",
    ),
    Entry("repro_after", COUNTERPART, "`fxstack.verify(f, repro=path)`"),
    Entry("verify_correctness", COUNTERPART, "`options={'check': True}`, `FXSTACK_CHECK=1`"),
    Entry("debug_dir_root", ABSENT, "nothing is written there"),
    Entry("traceable_tensor_subclasses", ABSENT, "every subclass is traced, as far as its methods can be"),
    Entry("run_gc_after_compile", ABSENT, "the garbage collector is left alone"),
    Entry("enable_cpp_guard_manager", ABSENT, "guards are evaluated natively"),
)
"""``torch._dynamo.config``. A flag that is not here belongs to the inside of stock's compiler."""

COMPILER_SETTINGS = (
    Entry("force_disable_caches", DONE, "True: `options={'cache': False}` for what is compiled from then on"),
    Entry("dynamic_sources", COUNTERPART, "`mark_dynamic`"),
    Entry("unbacked_sources", COUNTERPART, "`mark_dynamic`"),
    Entry("job_id", ABSENT, "no profile of sizes is kept between jobs"),
    Entry("cache_key_tag", COUNTERPART, "another `cache_dir`"),
)
"""``torch.compiler.config``; its aliases of flags above mean the same."""

ENVIRONMENT = (
    Entry("TORCH_COMPILE_DISABLE", DONE, "`1`: `fxstack.compile` gives back what it is given"),
    Entry("TORCHDYNAMO_DISABLE", DONE, "the same"),
    Entry("TORCHINDUCTOR_FORCE_DISABLE_CACHES", DONE, "`1`: nothing is kept between processes"),
    Entry("TORCH_COMPILE_FORCE_DISABLE_CACHES", DONE, "the same"),
    Entry("CXX", DONE, "the C++ compiler; option `compiler`"),
    Entry(
        "TORCH_LOGS",
        COUNTERPART,
        "the loggers `fxstack` and `dynamo_capture` of `logging`; `fxstack.explain`",
    ),
    Entry("TORCH_TRACE", COUNTERPART, "`fxstack.explain`"),
    Entry("TORCH_COMPILE_DEBUG", COUNTERPART, "`fxstack.explain`"),
    Entry("TORCHINDUCTOR_CACHE_DIR", COUNTERPART, "`FXSTACK_CACHE_DIR`"),
    Entry("TORCHDYNAMO_REPRO_AFTER", COUNTERPART, "`fxstack.verify(f, repro=path)`"),
    Entry(
        "TORCHDYNAMO_SUPPRESS_ERRORS", COUNTERPART, "`FXSTACK_ON_INTERNAL_ERROR`, which is `eager` by itself"
    ),
    Entry("TORCHINDUCTOR_MAX_AUTOTUNE", ABSENT, "nothing is measured while compiling"),
    Entry("TORCHINDUCTOR_COMPILE_THREADS", ABSENT, "compiling happens in the calling thread"),
    Entry("TORCHDYNAMO_VERBOSE", COUNTERPART, "the logger `dynamo_capture` at DEBUG"),
    Entry("FXSTACK_CACHE_DIR", DONE, "ours: where artifacts are kept"),
    Entry("FXSTACK_CHECK", DONE, "ours: `1` runs each compiled graph beside eager once"),
    Entry(
        "FXSTACK_DEBUG_KERNELS", DONE, "ours: `1` names kernels by lines, and keeps their C++ for debuggers"
    ),
    Entry("FXSTACK_ON_INTERNAL_ERROR", DONE, "ours: `raise` raises defects of the compiler itself"),
)
