/* Loads and launches a table of kernels with a driver that says what it is asked (fake_driver.c). */
#include <stdio.h>
#include <string.h>

#include "graph.h"

TorchFunctions torch_functions;
__thread FxaError *fxa_pending;

static int32_t create_guard(int32_t device, void **guard) {
    printf("guard %d\n", (int)device);
    *guard = (void *)1;
    return 0;
}
static int32_t delete_guard(void *guard) {
    (void)guard;
    puts("guard off");
    return 0;
}
static int32_t current_stream(int32_t device, void **stream) {
    (void)device;
    *stream = (void *)0x77;
    return 0;
}

void *fxa_torch_function(const char *name) {
    if (!strcmp(name, "aoti_torch_create_cuda_guard")) return (void *)create_guard;
    if (!strcmp(name, "aoti_torch_delete_cuda_guard")) return (void *)delete_guard;
    return !strcmp(name, "aoti_torch_get_current_cuda_stream") ? (void *)current_stream : NULL;
}
const char *fxa_torch_says(void) { return "torch"; }

static char room[4096] __attribute__((aligned(16)));
static int32_t empty(int64_t rank, const int64_t *sizes, const int64_t *strides, int32_t dtype, int32_t type, int32_t index, Handle *made) {
    (void)rank, (void)strides, (void)dtype;
    printf("memory %lld on %d %d\n", (long long)sizes[0], (int)type, (int)index);
    *made = room;
    return 0;
}
static int32_t data(Handle of, void **address) { return *address = of, 0; }
static int32_t drop(Handle of) { return (void)of, puts("memory back"), 0; }
static int32_t uint8(void) { return 0; }

static const GpuImage IMAGES[] = {{"one", "k0", 128, 0}, {"two", "k1", 256, 50000}, {"three", "k1j", 64, 16}};
static const GpuVariant VARIANTS[] = {
    {0, 4, 0, 3, 1, 1, 8, 8, 0, 0},        /* 9 to 16 rows, aligned */
    {0, 5, 0, 3, 1, 1, 8, 8, 0, 0},        /* 17 to 32 rows, all taken for granted, sizes alone, and nothing */
    {0, 5, 0, 2, 1, 1, 2, 2, 0, 0},
    {0, 5, 0, 0, 1, 1, 4, 4, 2, 2},
    {1, 2, 10, 2, 4, 128, 2, 1, 1, 2},     /* split in four */
    {2, 3, 6, 0, 0, 32, 4, 4, 2, 2},       /* tiles */
};
static const GpuTable TABLE = {IMAGES, VARIANTS, 3, 6};
static const GpuVariant MIXED_UP[] = {{0, 5, 0, 0, 1, 1, 8, 8, 0, 0}, {0, 4, 1, 0, 1, 1, 8, 8, 0, 0}};
static const GpuTable UNSORTED = {IMAGES, MIXED_UP, 3, 2};

static void launch(Graph *graph, GpuKernel kernel, const GpuCall *call, int64_t rows, int64_t points, void **arguments) {
    int32_t code = fxa_gpu_launch(graph, &kernel, call, rows, points, arguments);
    printf("-> %d %s\n", (int)code, code ? fxa_pending->text : "");
}

int main(int count, char **words) {
    (void)words;
    FxaError error = {0};
    Graph graph = {0};
    GpuCall call = {0};
    torch_functions = (TorchFunctions){.empty_strided = empty, .get_data_ptr = data, .delete_tensor_object = drop, .dtype_uint8 = uint8};
    FxaCode code = fxa_gpu_open(&graph.gpu, count > 1 ? &UNSORTED : &TABLE, &error);
    printf("open %d %s\n", (int)code, code ? error.text : "");
    if (code) return 0;
    fxa_pending = &error;
    fxa_gpu_enter(0, &call);
    uintptr_t aligned = 0x1000, odd = 0x1004;
    int64_t size = 32;
    void *with_aligned[] = {&aligned, &size, &size, &size, &size, &size}, *with_odd[] = {&odd, &size, &size, &size, &size, &size};
    launch(&graph, (GpuKernel){0, 1, 1, 0, 0, NULL}, &call, 16, 1, with_aligned);
    launch(&graph, (GpuKernel){0, 1, 1, 0, 0, NULL}, &call, 16, 1, with_odd);
    launch(&graph, (GpuKernel){0, 1, 1, 0, 0, NULL}, &call, 33, 1, with_aligned);
    launch(&graph, (GpuKernel){0, 1, 1, 0, 0, NULL}, &call, 32, 1, with_aligned);
    launch(&graph, (GpuKernel){0, 1, 1, 0, 0, NULL}, &call, 17, 1, with_odd);
    size = 17;
    launch(&graph, (GpuKernel){0, 1, 1, 0, 0, NULL}, &call, 17, 1, with_aligned);
    size = 32;
    launch(&graph, (GpuKernel){0, 1, 1, 0, 0, NULL}, &call, 0, 1, with_aligned);
    launch(&graph, (GpuKernel){1, 1, 1, 0, 2, NULL}, &call, 3, 1000, with_odd);
    launch(&graph, (GpuKernel){2, 1, 1, 0, 0, NULL}, &call, 7, 60, with_odd);
    fxa_gpu_leave(&call);
    fxa_gpu_close(&graph.gpu);
    return 0;
}
