"""The fixed part of an entry's text: helpers around torch's C functions, and the table by which they are bound."""

from __future__ import annotations

from collections.abc import Iterable

from fx_interface.python_runtime.quick_dataclasses import dataclass

TYPES = """\
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
typedef void* H;
"""

BASE_FUNCTIONS = {
    "aoti_torch_empty_strided": "int32_t, int64_t, const int64_t*, const int64_t*, int32_t, int32_t, int32_t, H*",
    "aoti_torch_delete_tensor_object": "int32_t, H",
    "aoti_torch_new_tensor_handle": "int32_t, H, H*",
    "aoti_torch_get_data_ptr": "int32_t, H, void**",
    "aoti_torch__reinterpret_tensor": "int32_t, H, int64_t, const int64_t*, const int64_t*, int64_t, H*",
    "aoti_torch__alloc_from_pool": "int32_t, H, int64_t, int32_t, int64_t, const int64_t*, const int64_t*, H*",
    "torch_get_num_threads": "int32_t, uint32_t*",
    "fx_check_inputs": "int32_t, const H*, const int64_t*, int64_t",
    "fx_conform": "int32_t, H*, const int64_t*, const char*, int64_t",
    "fx_scratch_take": "H, void*, int64_t",
    "fx_scratch_give": "void, void*, H",
    "fx_call_operator": "int32_t, void*, int64_t, const H*, int64_t, const int64_t*, int64_t, H*, int64_t",
    "fx_retry": (
        "int32_t, void*, int64_t, const H*, int64_t, const int64_t*, int64_t, H*, int64_t, const char*"
    ),
    "fx_explain": "int32_t, int32_t, const char*",
    "fx_index_error": "int32_t, const char*",
}
"""The C functions that every entry may call: result type, then parameter types."""

WATCHING = """\
/* While somebody watches, steps have labels; NULL: a kernel has ended. A host without watchers binds nothing. */
static const int32_t fx_unwatched = 0;
static const int32_t* fx_watched_calls = &fx_unwatched;
static void (*fx_watch)(const char*);
static inline void fx_at(const char* label) {
    if (__builtin_expect(*(volatile const int32_t*)fx_watched_calls, 0)) fx_watch(label);
}
"""

KERNEL_HELPERS = """\
/* A kernel does share number share of shares; asked for none, it says whether it is worth sharing. */
typedef int32_t Kernel(const int64_t* given, int64_t share, int64_t shares);
extern "C" int omp_get_thread_num();
extern "C" int omp_get_num_threads();
#define FX_WORDS \\
    int64_t* w = (int64_t*)__builtin_alloca(8 * count); \\
    va_list list; \\
    va_start(list, count); \\
    for (int64_t i = 0; i < count; i++) w[i] = va_arg(list, int64_t); \\
    va_end(list)
/* Pointers and numbers follow, one word each. This kernel starts threads itself, if any. */
static __attribute__((noinline)) int32_t fx_run(
    const char* label, Kernel* kernel, int64_t threads, int64_t count, ...) {
    FX_WORDS;
    fx_at(label);
    const int32_t bad = kernel(w, 0, threads);
    fx_at(nullptr);
    return bad;
}
static __attribute__((noinline)) int32_t fx_share(
    const char* label, Kernel* kernel, int64_t threads, int64_t count, ...) {
    FX_WORDS;
    fx_at(label);
    int32_t bad = 0;
    if (threads < 2 || !kernel(w, 0, 0)) {
        bad = kernel(w, 0, 1);
    } else {
        #pragma omp parallel num_threads(threads) reduction(|:bad)
        bad |= kernel(w, omp_get_thread_num(), omp_get_num_threads());
    }
    fx_at(nullptr);
    return bad;
}
"""

GPU_FUNCTIONS = {
    "fx_gpu_enter": "int32_t, int32_t, GpuCall*",
    "fx_gpu_leave": "void, GpuCall*",
    "fx_gpu_launch": "int32_t, void*, GpuKernel*, const GpuCall*, int64_t, int64_t, void**",
}
"""The same where kernels run on a GPU."""

GPU_TYPES = """\
/* As in the runtime's gpu.h. */
struct GpuCall { void* guard; void* stream; int32_t device; };
struct GpuKernel { int32_t number, pointers, sizes, floats, cells; void* variants; };
"""

GPU_HELPERS = """\
struct Gpu : GpuCall {
    Gpu() : GpuCall{} {}
    ~Gpu() { if (guard) fx_gpu_leave(this); }
};
static uint64_t fx_nothing; /* behind a kernel's own arguments are those that Triton adds, all zero here */
"""

HELPERS = """\
#define TRY(...) do { if (int32_t code = (__VA_ARGS__)) return code; } while (0)
static inline int64_t fx_floordiv(int64_t a, int64_t b) {
    int64_t q = a / b;
    return q - (a % b != 0 && (a < 0) != (b < 0));
}
static inline int64_t fx_mod(int64_t a, int64_t b) {
    int64_t r = a % b;
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
static inline int64_t fx_min(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t fx_max(int64_t a, int64_t b) { return a > b ? a : b; }
static inline int64_t fx_align(int64_t bytes) { return (bytes + 63) & ~(int64_t)63; }
static inline int64_t fx_bits(double value) { int64_t bits; memcpy(&bits, &value, 8); return bits; }
static inline double fx_float(int64_t bits) { double value; memcpy(&value, &bits, 8); return value; }
static inline int64_t fx_threads() { uint32_t n = 1; return torch_get_num_threads(&n) ? 1 : n; }

/* The constant numbers, and symbolic ones in their places: pairs of a position and the symbolic number there. */
static __attribute__((noinline)) void fx_fill(
    int64_t* to, const int64_t* constant, int64_t count, const int64_t* symbolic, const int64_t* places, int64_t n) {
    memcpy(to, constant, count * 8);
    for (int64_t i = 0; i < n; i += 2) to[places[i]] = symbolic[places[i + 1]];
}
/* A layout is: scalar type, rank, sizes, strides. */
static __attribute__((noinline)) int32_t fx_new(H* made, const int64_t* layout, char** data) {
    const int64_t rank = layout[1];
    if (aoti_torch_empty_strided(rank, layout + 2, layout + 2 + rank, (int32_t)layout[0], FX_DEVICE, made)) return 1;
    return aoti_torch_get_data_ptr(*made, (void**)data);
}
/* On the CPU, in a graph for a GPU. */
static __attribute__((noinline, unused)) int32_t fx_new_here(H* made, const int64_t* layout, char** data) {
    const int64_t rank = layout[1];
    if (aoti_torch_empty_strided(rank, layout + 2, layout + 2 + rank, (int32_t)layout[0], 0, -1, made)) return 1;
    return aoti_torch_get_data_ptr(*made, (void**)data);
}
static __attribute__((noinline)) int32_t fx_pointers(char** data, const H* from, const int64_t* which, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        if (aoti_torch_get_data_ptr(from[which[i]], (void**)&data[i])) return 1;
    }
    return 0;
}
static inline int32_t fx_pointer(H of, char** data) { return aoti_torch_get_data_ptr(of, (void**)data); }
static __attribute__((noinline)) int32_t fx_view(H* made, H of, const int64_t* layout, int64_t offset) {
    return aoti_torch__reinterpret_tensor(of, layout[1], layout + 2, layout + 2 + layout[1], offset, made);
}
static __attribute__((noinline)) int32_t fx_carve(H* made, H memory, const int64_t* layout, int64_t offset) {
    const int64_t rank = layout[1];
    return aoti_torch__alloc_from_pool(memory, offset, (int32_t)layout[0], rank, layout + 2, layout + 2 + rank, made);
}
static inline void fx_free(H& handle) {
    if (handle) aoti_torch_delete_tensor_object(handle);
    handle = nullptr;
}
static inline H fx_move(H& handle) { H moved = handle; handle = nullptr; return moved; }

template <int N> struct Frame {
    void* graph;
    H scratch;
    H h[N];
    explicit Frame(void* owner) : graph(owner), scratch(nullptr), h{} {}
    ~Frame() {
        for (int i = 0; i < N; i++) fx_free(h[i]);
        if (scratch) fx_scratch_give(graph, scratch);
    }
};
"""

DISPATCHER_FUNCTIONS = {
    "torch_call_dispatcher": "int32_t, const char*, const char*, uint64_t*, uint64_t",
    "torch_new_list_reserve_size": "int32_t, uint64_t, uint64_t*",
    "torch_list_push_back": "int32_t, uint64_t, uint64_t",
    "_Znwm": "void*, uint64_t",
}
"""The C functions behind calls through the dispatcher; the last is C++'s ``operator new``, which torch frees with."""

DISPATCHER_HELPERS = """\
static uint64_t fx_own(H handle) {
    H owned = nullptr;
    aoti_torch_new_tensor_handle(handle, &owned);
    return (uint64_t)owned;
}
static uint64_t fx_some(uint64_t word) {
    uint64_t* cell = (uint64_t*)_Znwm(8);
    *cell = word;
    return (uint64_t)cell;
}
template <typename... Words> static uint64_t fx_list(int64_t count, Words... words) {
    uint64_t list = 0;
    torch_new_list_reserve_size(count, &list);
    const uint64_t items[] = {(uint64_t)words..., 0};
    for (int64_t i = 0; i < count; i++) torch_list_push_back(list, items[i]);
    return list;
}
static const uint64_t fx_dispatcher_version = (2ull << 56) | (11ull << 48);
"""

STEPS_HEAD = """\
static int32_t fx_steps(
    Frame<{handles}>& f, void* graph, const H* in, const int64_t* numbers, H* out, int64_t* out_numbers) {{
    char* p[{pointers}];
"""
ENTRY = """\
    return 0;
}}
extern "C" __attribute__((visibility("default"))) int32_t fx_entry(
    void* graph, const H* in, const int64_t* numbers, H* out, int64_t* out_numbers) {{
    Frame<{handles}> f(graph);
    return fx_steps(f, graph, in, numbers, out, out_numbers);
}}
"""


@dataclass(frozen=True, slots=True)
class CFunction:
    """A C function by name: its result type and parameter types, separated by commas."""

    name: str
    types: str

    def pointer(self) -> str:
        """The definition of a static pointer to it, of the same name."""
        result, _, parameters = self.types.partition(", ")
        return f"static {result} (*{self.name})({parameters});"


def declarations(functions: Iterable[CFunction]) -> str:
    """Static pointers to the functions."""
    return "".join(f"{function.pointer()}\n" for function in functions)


def binding(functions: Iterable[CFunction], abi: int, optional: Iterable[str] = ()) -> str:
    """``fx_bind``, which looks every function up by name and says which one is missing, and ``fx_abi``. Pointers to
    ``optional`` functions stay null where a host has none."""
    asked = "".join(f'    *(void**)&{name} = lookup("{name}");\n' for name in optional)
    rows = "".join(f'    {{"{f.name}", (void**)&{f.name}}},\n' for f in functions)
    return (
        f"static const struct {{ const char* name; void** pointer; }} fx_wanted[] = {{\n{rows}}};\n"
        f'extern "C" __attribute__((visibility("default"))) const int32_t fx_abi = {abi};\n'
        'extern "C" __attribute__((visibility("default")))\n'
        "int32_t fx_bind(void* (*lookup)(const char*), const char** missing) {\n"
        "    for (auto& wanted : fx_wanted) {\n"
        "        *missing = wanted.name;\n"
        "        if (!(*wanted.pointer = lookup(wanted.name))) return 1;\n"
        "    }\n"
        '    if (void* watched = lookup("fx_watched_calls")) {\n'
        "        fx_watched_calls = (const int32_t*)watched;\n"
        '        *(void**)&fx_watch = lookup("fx_watch");\n'
        "    }\n"
        f"{asked}"
        "    return 0;\n"
        "}\n"
    )
