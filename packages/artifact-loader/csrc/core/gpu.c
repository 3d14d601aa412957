#include "gpu.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "graph.h"

enum { POINTERS_ALIGNED = 1, SIZES_ALIGNED = 2, ALIGNMENT = 16, LARGEST_GRID = 0x7fffffff, MOST_ACROSS = 0xffff };
/* Arguments that Triton adds, at most; bytes of a cell, at most; c10::DeviceType::CUDA. */
enum { ADDED = 4, CELL = 8, CUDA = 1 };
/* Shared memory that a kernel has without asking; CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES. */
enum { SHARED_UNASKED = 48 << 10, MOST_SHARED = 8 };

static const int64_t ONE = 1;
static uint64_t nothing;

/* The driver's interface as its documentation has it (0 is success), and torch's functions that a build for CUDA has. */
static struct {
    int (*launch_kernel)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);
    int (*current_context)(void **);
    int (*set_context)(void *);
    int (*retain_primary_context)(void **, int);
    int (*load_module)(void **, const void *);
    int (*find_function)(void **, void *, const char *);
    int (*set_attribute)(void *, int, int);
    int (*error_text)(int, const char **);
    int32_t (*create_guard)(int32_t, void **);
    int32_t (*delete_guard)(void *);
    int32_t (*current_stream)(int32_t, void **);
} gpu;

/* ---- the driver ---- */

typedef struct {
    const char *name;
    size_t offset;
    bool is_torchs;
} Wanted;

#define DRIVERS(field, symbol) {symbol, offsetof(__typeof__(gpu), field), false}
#define TORCHS(field, symbol) {symbol, offsetof(__typeof__(gpu), field), true}

static const Wanted WANTED[] = {
    DRIVERS(launch_kernel, "cuLaunchKernel"),
    DRIVERS(current_context, "cuCtxGetCurrent"),
    DRIVERS(set_context, "cuCtxSetCurrent"),
    DRIVERS(retain_primary_context, "cuDevicePrimaryCtxRetain"),
    DRIVERS(load_module, "cuModuleLoadData"),
    DRIVERS(find_function, "cuModuleGetFunction"),
    DRIVERS(set_attribute, "cuFuncSetAttribute"),
    DRIVERS(error_text, "cuGetErrorString"),
    TORCHS(create_guard, "aoti_torch_create_cuda_guard"),
    TORCHS(delete_guard, "aoti_torch_delete_cuda_guard"),
    TORCHS(current_stream, "aoti_torch_get_current_cuda_stream"),
};

static FxaCode bind_driver(FxaError *error) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library) return fxa_fail(error, FXA_NOT_LOADED, "the artifact runs on a GPU, and there is no driver: %s", dlerror());
    for (size_t i = 0; i < sizeof(WANTED) / sizeof(WANTED[0]); i++) {
        const Wanted *wanted = &WANTED[i];
        void *found = wanted->is_torchs ? fxa_torch_function(wanted->name) : dlsym(library, wanted->name);
        if (!found) {
            return fxa_fail(error, FXA_NOT_LOADED, "the artifact runs on a GPU, and %s has no %s",
                            wanted->is_torchs ? "this torch" : "the driver", wanted->name);
        }
        memcpy((char *)&gpu + wanted->offset, &found, sizeof(found));
    }
    return FXA_OK;
}

static FxaCode driver_failed(FxaError *error, FxaCode code, const char *doing, int number) {
    const char *text = NULL;
    if (gpu.error_text(number, &text) || !text) text = "unknown error";
    return fxa_fail(error, code, "%s: %s", doing, text);
}

static int32_t failed(const char *doing, int number) {
    driver_failed(fxa_pending, FXA_TORCH, doing, number);
    return ENTRY_HOST_ERROR;
}

/* A thread that has not used the device yet has no context: it gets the device's primary one, which torch uses. */
static int ensure_context(int32_t device) {
    void *context = NULL;
    int bad = gpu.current_context(&context);
    if (bad || context) return bad;
    bad = gpu.retain_primary_context(&context, device);
    return bad ? bad : gpu.set_context(context);
}

int32_t fxa_gpu_enter(int32_t device, GpuCall *call) {
    call->device = device;
    if (gpu.create_guard(device, &call->guard)) return ENTRY_TORCH_ERROR;
    if (gpu.current_stream(device, &call->stream)) return ENTRY_TORCH_ERROR;
    int bad = ensure_context(device);
    return bad ? failed("taking up the GPU's context", bad) : ENTRY_OK;
}

void fxa_gpu_leave(GpuCall *call) {
    if (call->guard) gpu.delete_guard(call->guard);
    call->guard = NULL;
}

/* ---- loading ---- */

static FxaCode load(const GpuImage *image, void **function, FxaError *error) {
    void *module = NULL;
    int bad = gpu.load_module(&module, image->content);
    if (!bad) bad = gpu.find_function(function, module, image->name);
    if (!bad && image->shared > SHARED_UNASKED) bad = gpu.set_attribute(*function, MOST_SHARED, (int)image->shared);
    return bad ? driver_failed(error, FXA_NOT_LOADED, "a kernel cannot be loaded onto the GPU", bad) : FXA_OK;
}

/* The order of the table: by kernel, rows and points. */
static int order(const GpuVariant *one, int32_t number, int32_t rows, int32_t points) {
    if (one->number != number) return one->number < number ? -1 : 1;
    if (one->rows != rows) return one->rows < rows ? -1 : 1;
    return one->points == points ? 0 : one->points < points ? -1 : 1;
}

static bool is_whole(const GpuTable *table) {
    for (int64_t i = 0; i < table->variant_count; i++) {
        const GpuVariant *one = &table->variants[i], *next = one + 1;
        if (i + 1 < table->variant_count && order(one, next->number, next->rows, next->points) > 0) return false;
        if (one->image < 0 || one->image >= table->image_count || one->join < 0 || one->join >= table->image_count) return false;
        if (one->block < 1 || one->join_block < 1 || one->block_points < 1 || one->parts < 0) return false;
    }
    return true;
}

FxaCode fxa_gpu_open(GpuKernels *kernels, const GpuTable *table, FxaError *error) {
    if (!is_whole(table)) return fxa_fail(error, FXA_NOT_LOADED, "a native object's table of kernels contradicts itself");
    FxaCode code = bind_driver(error);
    if (code) return code;
    kernels->functions = calloc(table->image_count + 1, sizeof(void *));
    if (!kernels->functions) return fxa_fail(error, FXA_NO_MEMORY, "out of memory");
    GpuCall call = {0};
    FxaError *before = fxa_pending;
    fxa_pending = error;
    int32_t entered = fxa_gpu_enter(0, &call);
    fxa_pending = before;
    if (entered == ENTRY_TORCH_ERROR) code = fxa_fail(error, FXA_NOT_LOADED, "the GPU cannot be used: %s", fxa_torch_says());
    if (entered == ENTRY_HOST_ERROR) code = error->code = FXA_NOT_LOADED;
    for (int64_t i = 0; !code && i < table->image_count; i++) code = load(&table->images[i], &kernels->functions[i], error);
    fxa_gpu_leave(&call);
    kernels->table = code ? NULL : table;
    return code;
}

void fxa_gpu_close(GpuKernels *kernels) {
    free(kernels->functions);
    memset(kernels, 0, sizeof(*kernels));
}

/* ---- launching ---- */

/* The number of bits of the least power of two that is not below `count`. */
static int32_t size_class(int64_t count) { return count <= 1 ? 0 : 64 - __builtin_clzll((unsigned long long)count - 1); }

static int32_t traits_of(const GpuKernel *kernel, void **arguments) {
    uintptr_t pointers = 0;
    int64_t sizes = 0;
    for (int32_t i = 0; i < kernel->pointers; i++) pointers |= *(uintptr_t *)arguments[i];
    for (int32_t i = 0; i < kernel->sizes; i++) sizes |= *(int64_t *)arguments[kernel->pointers + i];
    return (pointers % ALIGNMENT ? 0 : POINTERS_ALIGNED) | (sizes % ALIGNMENT ? 0 : SIZES_ALIGNED);
}

/* The first variant of the launch's class that fits; NULL if there is none. */
static const GpuVariant *find(const GpuTable *table, const GpuKernel *kernel, int64_t rows, int64_t points, int32_t traits) {
    int32_t row_class = size_class(rows), point_class = size_class(points);
    int64_t first = 0, end = table ? table->variant_count : 0;
    for (int64_t beyond = end; first < beyond;) {
        int64_t middle = first + (beyond - first) / 2;
        if (order(&table->variants[middle], kernel->number, row_class, point_class) < 0) first = middle + 1;
        else beyond = middle;
    }
    for (; first < end && !order(&table->variants[first], kernel->number, row_class, point_class); first++) {
        if ((table->variants[first].traits & ~traits) == 0) return &table->variants[first];
    }
    return NULL;
}

static int64_t blocks(int64_t count, int64_t block) { return (count + block - 1) / block; }

static int32_t run(const GpuKernels *kernels, int32_t image, const GpuCall *call, int64_t across, int64_t parts, void **arguments) {
    const GpuImage *of = &kernels->table->images[image];
    if (across > LARGEST_GRID || parts > MOST_ACROSS) {
        fxa_fail(fxa_pending, FXA_TORCH, "launching a kernel: too much for one grid");
        return ENTRY_HOST_ERROR;
    }
    int bad = gpu.launch_kernel(kernels->functions[image], (unsigned)across, (unsigned)parts, 1, of->threads, 1, 1, of->shared,
                                call->stream, arguments, NULL);
    return bad ? failed("launching a kernel", bad) : ENTRY_OK;
}

/* Both functions of a split kernel. The cells in between go back to torch's allocator as soon as both are queued. */
static int32_t run_split(const GpuKernels *kernels, const GpuVariant *variant, const GpuKernel *kernel, const GpuCall *call,
                         int64_t rows, int64_t points, void **arguments) {
    const int32_t own = kernel->pointers + kernel->sizes + kernel->floats;
    int64_t last = blocks(blocks(points, variant->block_points), variant->parts) * variant->block_points;
    const int64_t room = (variant->parts * rows * CELL + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT, bytes = kernel->cells * room;
    Handle memory = NULL;
    char *start = NULL, *cells[kernel->cells + 1];
    void *all[own + kernel->cells + 1 + ADDED];
    if (torch_functions.empty_strided(1, &bytes, &ONE, torch_functions.dtype_uint8(), CUDA, call->device, &memory)) {
        return ENTRY_TORCH_ERROR;
    }
    int32_t code = torch_functions.get_data_ptr(memory, (void **)&start) ? ENTRY_TORCH_ERROR : ENTRY_OK;
    memcpy(all, arguments, own * sizeof(void *));
    for (int32_t i = 0; i < kernel->cells; i++) {
        cells[i] = start + i * room;
        all[own + i] = &cells[i];
    }
    all[own + kernel->cells] = &last;
    for (int32_t i = 1; i <= ADDED; i++) all[own + kernel->cells + i] = &nothing;
    if (!code) code = run(kernels, variant->image, call, blocks(rows, variant->block), variant->parts, all);
    last = variant->parts;
    if (!code) code = run(kernels, variant->join, call, blocks(rows, variant->join_block), 1, all);
    torch_functions.delete_tensor_object(memory);
    return code;
}

int32_t fxa_gpu_launch(void *context, GpuKernel *kernel, const GpuCall *call, int64_t rows, int64_t points, void **arguments) {
    const GpuKernels *kernels = &((Graph *)context)->gpu;
    if (rows <= 0) return ENTRY_OK;
    const GpuVariant *variant = find(kernels->table, kernel, rows, points, traits_of(kernel, arguments));
    if (!variant) {
        fxa_fail(fxa_pending, FXA_TORCH, "the artifact has no kernel %d for %lld rows of %lld points", (int)kernel->number,
                 (long long)rows, (long long)points);
        return ENTRY_HOST_ERROR;
    }
    if (variant->parts > 1) return run_split(kernels, variant, kernel, call, rows, points, arguments);
    int64_t across = variant->parts ? 1 : blocks(points, variant->block_points);
    return run(kernels, variant->image, call, blocks(rows, variant->block), across, arguments);
}
