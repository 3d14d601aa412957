#include "gpu.h"

#include <dlfcn.h>
#include <stdatomic.h>

#include "gpu_times.h"
#include "graph.h"

enum { POINTERS_ALIGNED = 1, SIZES_ALIGNED = 2, ALIGNMENT = 16, LARGEST_GRID = 0x7fffffff };

/* Arguments that Triton adds, at most; bytes of a cell, at most; c10::DeviceType::CUDA. */
enum { ADDED = 4, CELL = 8, CUDA = 1 };

static const int64_t ONE = 1;
static uint64_t nothing;

/* The driver's interface, as its documentation has it; results are 0 for success. */
static struct {
    int (*launch_kernel)(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                         unsigned block_y, unsigned block_z, unsigned shared, void *stream, void **arguments, void **extra);
    int (*current_context)(void **context);
    int (*set_context)(void *context);
    int (*retain_primary_context)(void **context, int device);
    int (*error_text)(int error, const char **text);
} driver;

/* torch's own functions, which only a build for CUDA has. */
static struct {
    int32_t (*create_guard)(int32_t device, void **guard);
    int32_t (*delete_guard)(void *guard);
    int32_t (*current_stream)(int32_t device, void **stream);
    int32_t (*data_pointer)(Handle, void **);
} torch_cuda;

static int32_t raise_text(const char *doing, const char *text) {
    PyGILState_STATE state = PyGILState_Ensure();
    PyErr_Format(PyExc_RuntimeError, "%s: %s", doing, text);
    PyGILState_Release(state);
    return ENTRY_PYTHON_ERROR;
}

static int32_t driver_error(const char *doing, int error) {
    const char *text = NULL;
    if (driver.error_text(error, &text) || !text) text = "unknown error";
    return raise_text(doing, text);
}

static bool bind_driver(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library) return false;
    driver.current_context = (int (*)(void **))dlsym(library, "cuCtxGetCurrent");
    driver.set_context = (int (*)(void *))dlsym(library, "cuCtxSetCurrent");
    driver.retain_primary_context = (int (*)(void **, int))dlsym(library, "cuDevicePrimaryCtxRetain");
    driver.error_text = (int (*)(int, const char **))dlsym(library, "cuGetErrorString");
    torch_cuda.create_guard = (int32_t(*)(int32_t, void **))shim_lookup("aoti_torch_create_cuda_guard");
    torch_cuda.delete_guard = (int32_t(*)(void *))shim_lookup("aoti_torch_delete_cuda_guard");
    torch_cuda.current_stream = (int32_t(*)(int32_t, void **))shim_lookup("aoti_torch_get_current_cuda_stream");
    torch_cuda.data_pointer = (int32_t(*)(Handle, void **))shim_lookup("aoti_torch_get_data_ptr");
    void *launch = dlsym(library, "cuLaunchKernel");
    driver.launch_kernel = (int (*)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *,
                                    void **, void **))launch;
    return driver.current_context && driver.set_context && driver.retain_primary_context && driver.error_text &&
           torch_cuda.create_guard && torch_cuda.delete_guard && torch_cuda.current_stream && torch_cuda.data_pointer && launch;
}

/* A thread that has not used the device yet, autograd's for example, has no context: give it the device's primary one. */
static int32_t ensure_context(int32_t device) {
    void *context = NULL;
    int error = driver.current_context(&context);
    if (!error && context) return ENTRY_OK;
    if (!error) error = driver.retain_primary_context(&context, device);
    if (!error) error = driver.set_context(context);
    return error ? driver_error("taking up the GPU's context", error) : ENTRY_OK;
}

int32_t gpu_enter(int32_t device, GpuCall *call) {
    static _Atomic int bound; /* 0 not tried, 1 there, -1 missing; trying twice does no harm */
    if (!bound) bound = bind_driver() ? 1 : -1;
    if (bound < 0) return raise_text("a compiled graph for a GPU", "libcuda.so.1 or torch's CUDA functions are missing");
    call->device = device;
    if (torch_cuda.create_guard(device, &call->guard)) return ENTRY_TORCH_ERROR;
    if (torch_cuda.current_stream(device, &call->stream)) return ENTRY_TORCH_ERROR;
    gpu_times_set_stream((GpuStream){call->stream, device});
    return ensure_context(device);
}

void gpu_leave(GpuCall *call) {
    if (call->guard) torch_cuda.delete_guard(call->guard);
    call->guard = NULL;
}

/* ---- variants ---- */

/* The number of bits of the least power of two that is not below `count`. */
static int32_t size_class(int64_t count) { return count <= 1 ? 0 : 64 - __builtin_clzll((unsigned long long)count - 1); }

static int32_t traits_of(const GpuKernel *kernel, void **arguments) {
    uintptr_t pointers = 0;
    int64_t sizes = 0;
    for (int32_t i = 0; i < kernel->pointers; i++) pointers |= *(uintptr_t *)arguments[i];
    for (int32_t i = 0; i < kernel->sizes; i++) sizes |= *(int64_t *)arguments[kernel->pointers + i];
    return (pointers % ALIGNMENT ? 0 : POINTERS_ALIGNED) | (kernel->sizes && sizes % ALIGNMENT ? 0 : SIZES_ALIGNED);
}

static const Variant *find(GpuKernel *kernel, int32_t rows, int32_t points, int32_t traits) {
    const Variant *found = __atomic_load_n(&kernel->variants, __ATOMIC_ACQUIRE);
    while (found && (found->rows != rows || found->points != points || found->traits != traits)) found = found->next;
    return found;
}

/* With the GIL: ask Python to compile and load; NULL with an exception. */
static const Variant *prepare(const Graph *graph, GpuKernel *kernel, int32_t rows, int32_t points, int32_t traits) {
    unsigned long long function, join = 0;
    Variant found = {.rows = rows, .points = points, .traits = traits, .parts = 1};
    GpuFunction *one = &found.function, *other = &found.join;
    PyObject *made = PyObject_CallFunction(graph->prepare, "iiii", kernel->number, rows, points, traits);
    if (!made) return NULL;
    int good = PyArg_ParseTuple(made, "KLII|LLKLII", &function, &one->block, &one->threads, &one->shared, &found.parts,
                                &found.block_points, &join, &other->block, &other->threads, &other->shared);
    Py_DECREF(made);
    Variant *variant = good ? PyMem_RawMalloc(sizeof(Variant)) : NULL;
    if (!variant) return good ? (PyErr_NoMemory(), NULL) : NULL;
    one->function = (void *)(uintptr_t)function;
    other->function = (void *)(uintptr_t)join;
    found.next = __atomic_load_n(&kernel->variants, __ATOMIC_ACQUIRE);
    *variant = found;
    while (!__atomic_compare_exchange_n(&kernel->variants, &variant->next, variant, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE)) {
    }
    return variant;
}

/* ---- launching ---- */

static int64_t blocks(int64_t count, int64_t block) { return (count + block - 1) / block; }

static int32_t run(const GpuFunction *function, const GpuCall *call, int64_t rows, int64_t parts, void **arguments) {
    const int64_t grid = blocks(rows, function->block);
    if (grid > LARGEST_GRID) return raise_text("launching a kernel", "too many rows for one grid");
    int error = driver.launch_kernel(function->function, (unsigned)grid, (unsigned)parts, 1, function->threads, 1, 1,
                                     function->shared, call->stream, arguments, NULL);
    return error ? driver_error("launching a kernel", error) : ENTRY_OK;
}

/* Both functions of a split kernel, with cells in between that go back to torch's allocator as soon as both are queued. */
static int32_t run_split(const GpuKernel *kernel, const Variant *variant, const GpuCall *call, int64_t rows, int64_t points,
                         void **arguments) {
    const int32_t own = kernel->pointers + kernel->sizes + kernel->floats;
    int64_t last = blocks(blocks(points, variant->block_points), variant->parts) * variant->block_points;
    const int64_t room = (variant->parts * rows * CELL + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT, bytes = kernel->cells * room;
    Handle memory = NULL;
    char *cells[kernel->cells], *start = NULL;
    void *all[own + kernel->cells + 1 + ADDED];
    if (shim.empty_strided(1, &bytes, &ONE, shim.dtype_uint8(), CUDA, call->device, &memory)) return ENTRY_TORCH_ERROR;
    int32_t code = torch_cuda.data_pointer(memory, (void **)&start);
    for (int32_t i = 0; i < own; i++) all[i] = arguments[i];
    for (int32_t i = 0; i < kernel->cells; i++) {
        cells[i] = start + i * room;
        all[own + i] = &cells[i];
    }
    all[own + kernel->cells] = &last;
    for (int32_t i = 1; i <= ADDED; i++) all[own + kernel->cells + i] = &nothing;
    if (!code) code = run(&variant->function, call, rows, variant->parts, all);
    last = variant->parts;
    if (!code) code = run(&variant->join, call, rows, 1, all);
    shim.delete_tensor_object(memory);
    return code;
}

int32_t gpu_launch(void *context, GpuKernel *kernel, const GpuCall *call, int64_t rows, int64_t points, void **arguments) {
    if (rows <= 0) return ENTRY_OK;
    const int32_t row_class = size_class(rows), point_class = size_class(points), traits = traits_of(kernel, arguments);
    const Variant *variant = find(kernel, row_class, point_class, traits);
    if (!variant) {
        PyGILState_STATE state = PyGILState_Ensure();
        variant = prepare(context, kernel, row_class, point_class, traits);
        PyGILState_Release(state);
        if (!variant) return ENTRY_PYTHON_ERROR;
    }
    if (variant->parts > 1) return run_split(kernel, variant, call, rows, points, arguments);
    const int64_t across = variant->parts ? 1 : blocks(points, variant->block_points);
    return run(&variant->function, call, rows, across, arguments);
}
