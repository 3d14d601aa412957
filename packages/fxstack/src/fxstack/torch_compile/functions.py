"""The functions of ``torch.compiler`` and ``torch._dynamo``: which are obeyed, and what does the rest here."""

from __future__ import annotations

from fxstack.torch_compile.entry import ABSENT, COUNTERPART, DONE, Entry

COMPILER = (
    Entry("compile", COUNTERPART, "`fxstack.compile`"),
    Entry("reset", COUNTERPART, "`fxstack.reset()`"),
    Entry("list_backends", COUNTERPART, "`fxstack.list_backends()`"),
    Entry("set_default_backend", DONE, "the backend of `compile` without one"),
    Entry(
        "get_default_backend", DONE, "as torch says; not set, it is `inductor`, which is this stack's here"
    ),
    Entry("allow_in_graph", DONE, "also `fxstack.allow_in_graph`"),
    Entry("disable", DONE, "also `fxstack.disable`"),
    Entry("assume_constant_result", DONE, "also `fxstack.assume_constant_result`"),
    Entry(
        "substitute_in_graph", DONE, "also `fxstack.substitute_in_graph`; ours goes first where both have one"
    ),
    Entry(
        "set_stance",
        DONE,
        "all stances, as a function, block and decorator; also `fxstack.set_stance`, which"
        " alone forgets what other backends compiled where `force_backend` changes",
    ),
    Entry("is_compiling", DONE, "True while code is captured; also `fxstack.is_compiling`"),
    Entry("is_dynamo_compiling", DONE, "True while code is captured"),
    Entry("is_exporting", DONE, "False while code is captured"),
    Entry(
        "nested_compile_region",
        DONE,
        "the function's operations are part of the graph; equal parts are compiled once",
    ),
    Entry("wrap_numpy", DONE, "the function is captured, with tensors in and out"),
    Entry(
        "cudagraph_mark_step_begin",
        ABSENT,
        "results of recorded graphs are never overwritten, so no step has to be marked; calling it inside is captured",
    ),
    Entry("save_cache_artifacts", COUNTERPART, "copy `cache_dir`: artifacts are files, named by content"),
    Entry("load_cache_artifacts", COUNTERPART, "point `cache_dir` at the copy"),
    Entry("load_compiled_function", ABSENT, "nothing is packaged"),
    Entry("set_enable_guard_collectives", ABSENT, "each process decides by its own guards"),
    Entry("config", DONE, "below"),
    Entry(
        "keep_portable_guards_unsafe",
        DONE,
        "as `options={'guard_filter_fn': ...}`; guards on tensors and sizes are always kept",
    ),
    Entry("skip_guard_on_inbuilt_nn_modules_unsafe", DONE, "the same"),
    Entry("skip_guard_on_all_nn_modules_unsafe", DONE, "the same"),
    Entry("keep_tensor_guards_unsafe", DONE, "the same"),
    Entry("skip_guard_on_globals_unsafe", DONE, "the same"),
    Entry("skip_all_guards_unsafe", DONE, "the same"),
)
"""``torch.compiler``."""

DYNAMO = (
    Entry(
        "mark_dynamic",
        DONE,
        "symbolic at the first capture, with `min` and `max`; a size that has to be a constant"
        " is one, without an error. Also `fxstack.mark_dynamic`",
    ),
    Entry("maybe_mark_dynamic", DONE, "as `mark_dynamic`"),
    Entry("decorators.mark_unbacked", DONE, "as `mark_dynamic`: 0 and 1 are compiled on their own"),
    Entry("mark_static", DONE, "for a tensor; also `fxstack.mark_static`"),
    Entry("mark_static_address", ABSENT, "addresses are read at each call"),
    Entry("graph_break", DONE, "also `fxstack.graph_break`"),
    Entry("skip_frame", DONE, "the graph ends there"),
    Entry("step_unsupported", DONE, "the graph ends there"),
    Entry("disallow_in_graph", DONE, "a call is a graph break; also `fxstack.disallow_in_graph`"),
    Entry("forbid_in_graph", DONE, "a call is a graph break, and an error with `fullgraph=True`"),
    Entry("nonstrict_trace", DONE, "a call is one node"),
    Entry("disable", DONE, "as `torch.compiler.disable`"),
    Entry("allow_in_graph", DONE, "as `torch.compiler.allow_in_graph`"),
    Entry("assume_constant_result", DONE, "as `torch.compiler.assume_constant_result`"),
    Entry("substitute_in_graph", DONE, "as `torch.compiler.substitute_in_graph`"),
    Entry("set_stance", DONE, "as `torch.compiler.set_stance`"),
    Entry("error_on_graph_break", DONE, "also `fxstack.error_on_graph_break`"),
    Entry(
        "patch_dynamo_config",
        DONE,
        "a block is part of the graph; the flags that it may change mean nothing here",
    ),
    Entry("config.patch", DONE, "around a call: the flags hold for what is compiled meanwhile"),
    Entry("is_compiling", DONE, "as `torch.compiler.is_compiling`"),
    Entry("register_backend", DONE, "`compile(backend=name)` finds it"),
    Entry("lookup_backend", COUNTERPART, "`fxstack.backend(name)`"),
    Entry("list_backends", COUNTERPART, "`fxstack.list_backends()`"),
    Entry("run", COUNTERPART, "`fxstack.set_stance('eager_on_recompile')`"),
    Entry("reset", COUNTERPART, "`fxstack.reset()`"),
    Entry("explain", COUNTERPART, "`fxstack.explain(f)(*args)`"),
    Entry("export", COUNTERPART, "`dynamo_capture.export(f)(*args)`"),
    Entry("optimize", COUNTERPART, "`dynamo_capture.optimize(backend)`"),
    Entry("optimize_assert", COUNTERPART, "`dynamo_capture.optimize(backend, fullgraph=True)`"),
    Entry("dont_skip_tracing", ABSENT, "the program's code is captured wherever it is"),
    Entry(
        "OptimizedModule",
        COUNTERPART,
        "`fxstack.OptimizedModule`: what compiled modules are instances of, beside the module's own class",
    ),
)
"""``torch._dynamo``."""

CHECKS = (
    Entry("_check", DONE, "holds where the graph runs, with its message; what it says of sizes is used"),
    Entry("_check_is_size", DONE, "the same"),
    Entry("_check_value", DONE, "the same"),
    Entry("_check_index", DONE, "the same"),
    Entry("_check_type", DONE, "the same"),
    Entry("_check_not_implemented", DONE, "the same"),
    Entry("_check_with", DONE, "the same"),
    Entry("_check_tensor_all", DONE, "the same, for a tensor of booleans"),
    Entry("_assert", DONE, "the same"),
)
"""``torch._check`` and its kin."""
