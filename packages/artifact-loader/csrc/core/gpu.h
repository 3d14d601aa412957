/* Kernels of GPU 0 that a native object has with it, as data: loaded when the object is, launched without a compiler. The driver's
functions are found by name in libcuda.so.1, so that nothing of it is needed where there is no GPU. */
#ifndef FXA_GPU_H
#define FXA_GPU_H

#include "torch_functions.h"

/* ---- what a native object exports as fx_gpu_variants (inductor-codegen's kernel_images.py) ---- */

/* A compiled kernel: an ELF file for one architecture, and the function in it. */
typedef struct {
    const void *content;
    const char *name;
    uint32_t threads, shared;
} GpuImage;

/* A kernel for launches of a class: `rows` and `points` are numbers of bits; `traits` say what its text takes for granted. With
several parts, `image` leaves totals of each part of the points in cells and `join` makes results of them; with none, `image`
takes tiles. A table is sorted by number, rows and points; the most special of several comes first. */
typedef struct {
    int32_t number, rows, points, traits;
    int64_t parts, block_points, block, join_block;
    int32_t image, join;
} GpuVariant;

typedef struct {
    const GpuImage *images;
    const GpuVariant *variants;
    int64_t image_count, variant_count;
} GpuTable;

/* ---- what an entry has of it ---- */

/* torch's device guard and current stream, during a call. */
typedef struct {
    void *guard, *stream;
    int32_t device;
} GpuCall;

/* A kernel by its number. Its arguments are pointers, sizes, floats; it has `cells` arrays between its two functions. */
typedef struct {
    int32_t number, pointers, sizes, floats, cells;
    void *unused;
} GpuKernel;

/* ---- a graph's kernels ---- */

typedef struct {
    const GpuTable *table; /* NULL: the graph has none */
    void **functions;      /* by image; they stay loaded, as work that was queued may still use them */
} GpuKernels;

/* Load all images of `table`. FXA_NOT_LOADED without a driver, or where it refuses one. fxa_gpu_close in any case. */
FxaCode fxa_gpu_open(GpuKernels *kernels, const GpuTable *table, FxaError *error);
void fxa_gpu_close(GpuKernels *kernels);

/* What an entry calls; `context` is its Graph. ENTRY_OK, ENTRY_TORCH_ERROR, or ENTRY_HOST_ERROR with fxa_pending filled. */
int32_t fxa_gpu_enter(int32_t device, GpuCall *call);
void fxa_gpu_leave(GpuCall *call);
int32_t fxa_gpu_launch(void *context, GpuKernel *kernel, const GpuCall *call, int64_t rows, int64_t points, void **arguments);

#endif
