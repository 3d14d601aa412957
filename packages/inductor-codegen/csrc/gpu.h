/* Kernels of a GPU, launched from generated code without Python: through the driver's own functions, found by name. */
#ifndef INDUCTOR_CODEGEN_GPU_H
#define INDUCTOR_CODEGEN_GPU_H

#include "shim.h"

/* What an entry holds during a call: torch's device guard, and the device's current stream. */
typedef struct {
    void *guard;
    void *stream;
    int32_t device;
} GpuCall;

/* A loaded function; `block` rows are one thread block's. */
typedef struct {
    void *function;
    int64_t block;
    uint32_t threads, shared;
} GpuFunction;

/* A kernel as it was compiled for sizes of one class: `rows` and `points` are numbers of bits, `traits` says what its text took
   for granted. With more than one part, `function` leaves totals of each part of the points in cells, in blocks of
   `block_points`, and `join` makes the results of them. With none, `function` takes tiles of `block_points`. */
typedef struct Variant {
    struct Variant *next;
    int32_t rows, points, traits;
    int64_t parts, block_points;
    GpuFunction function, join;
} Variant;

/* A kernel of a generated library, by its number there. Its arguments are pointers, then sizes, then floats; `cells` arrays of
   cells are between its two functions if it can be split. */
typedef struct {
    int32_t number, pointers, sizes, floats, cells;
    Variant *variants; /* grows at its head only */
} GpuKernel;

/* ENTRY_OK, or another code of graph.h with the exception set or to be had from torch. */
int32_t gpu_enter(int32_t device, GpuCall *call);
void gpu_leave(GpuCall *call);

/* Run `kernel` on `rows` rows of `points` points. `arguments` are addresses of its arguments and, behind them, of zeros for what
   Triton adds. A variant that is not there yet comes from the graph's `prepare`. */
int32_t gpu_launch(void *context, GpuKernel *kernel, const GpuCall *call, int64_t rows, int64_t points, void **arguments);

#endif
