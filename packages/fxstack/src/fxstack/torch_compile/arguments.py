"""The arguments and modes of ``torch.compile``, and what each is here."""

from __future__ import annotations

from fxstack.torch_compile.entry import ACCEPTED, DONE, Entry

ARGUMENTS = (
    Entry(
        "model", DONE, "a function, method, callable object or module; without it, `compile` is a decorator"
    ),
    Entry("fullgraph", DONE, "True: a graph break is a `CaptureError` with its code, line and advice"),
    Entry(
        "dynamic",
        DONE,
        "True: symbolic sizes at once; False: never; None: for sizes that change between calls",
    ),
    Entry(
        "backend",
        DONE,
        "a name or a callable; None is what `torch.compiler.set_default_backend` says, else `inductor`, which is this"
        " stack's. Names are those of plug-ins of the group `fx_interface.backends`, and then those that torch knows"
        " (`torch._dynamo.register_backend`, the group `torch_dynamo_backends`). A callable that is no plug-in is given"
        " `mode=` and `options=` as torch gives them",
    ),
    Entry("mode", DONE, "one of the modes below, or `strict`; None is `default`"),
    Entry(
        "options",
        DONE,
        "options of this stack (`fxstack.Options`) and of stock's code generator, below; `mode` and `options` may both"
        " be given",
    ),
    Entry(
        "name",
        DONE,
        "what `torch.profiler` shows for calls of the compiled function, in place of its own name",
    ),
    Entry("disable", DONE, "True: the model comes back as it is"),
    Entry(
        "recompile_limit",
        DONE,
        "so many versions of each code object are compiled, without those for objects that are gone (of these 256);"
        " further calls run uncompiled, with a warning, and are a `CaptureError` with `fullgraph=True`. None: 64",
    ),
    Entry(
        "isolate_recompiles",
        DONE,
        "always so: what one `compile` has compiled, another neither uses nor counts",
    ),
    Entry(
        "shapes_spec",
        ACCEPTED,
        "sizes are symbolic by `dynamic`, by marks on tensors, and where they change between calls",
    ),
)

MODES = (
    Entry("default", DONE, "results rounded where eager rounds them"),
    Entry(
        "reduce-overhead",
        DONE,
        "a graph on a GPU, forward or backward, is recorded as a CUDA graph after some calls, and replayed where nobody"
        " can tell but by the time; results stay what they are (option `cuda_graphs`)",
    ),
    Entry(
        "max-autotune",
        DONE,
        "on a GPU, 16-bit matrix products with what is computed from them, and launches of kernels, are chosen by"
        " measuring (option `autotune`); convolutions stay the library's; CUDA graphs as for `reduce-overhead`",
    ),
    Entry("max-autotune-no-cudagraphs", DONE, "the same without CUDA graphs"),
    Entry("lite", ACCEPTED, "all is compiled, as in the default mode"),
)
"""The modes of ``torch.compile``; ``fxstack.options.MODES`` are this stack's own."""
