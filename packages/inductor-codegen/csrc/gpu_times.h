/* Times of steps on a GPU, which works on when its calls have returned: by events of the driver on the call's stream. */
#ifndef INDUCTOR_CODEGEN_GPU_TIMES_H
#define INDUCTOR_CODEGEN_GPU_TIMES_H

#include <Python.h>
#include <stdint.h>

/* What a call of a graph on this thread queues its work on; device -1: none. gpu.c sets it, watching.c gives back the one of
   the call around. */
typedef struct {
    void *stream;
    int32_t device;
} GpuStream;
GpuStream gpu_times_set_stream(GpuStream stream);

/* A step that runs: NULL if it cannot be timed. It belongs to the thread until it ends. */
typedef struct GpuStep GpuStep;
GpuStep *gpu_times_begin(const char *label);
void gpu_times_end(GpuStep *step);

/* While a call of a graph queues its steps, the stream waits (20 ms at most), so that none of them waits for the host between
   its two events. `hold` begins that if the thread has a stream that is not being recorded; `release` ends it. NULL is none. */
typedef struct GpuHold GpuHold;
GpuHold *gpu_times_hold(void);
void gpu_times_release(GpuHold *hold);

/* With the GIL, which it lets go of: wait for the steps that have ended and count them. */
void gpu_times_collect(void);

#endif
