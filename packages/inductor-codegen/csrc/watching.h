/* Times of the kernels and library calls that compiled graphs run, kept while somebody watches. */
#ifndef INDUCTOR_CODEGEN_WATCHING_H
#define INDUCTOR_CODEGEN_WATCHING_H

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "gpu_times.h"

/* What a thread watched before a call of a compiled graph. */
typedef struct {
    bool is_watched;
    int mode, base;
    GpuHold *hold;
    GpuStream stream;
} WatchedCall;

/* Around a call of an entry: its kernels and library calls are ranges of torch's profiler where there is one, and are
   counted where Python asked for that, by the host's clock, or by the GPU's (gpu_times.h) if `on_cpu` is false. */
WatchedCall watching_enter(bool on_cpu);
void watching_leave(WatchedCall call);

/* What generated code looks at, not 0 while any call is watched, and what it calls then: the step before, if there is one,
   ends, and one with this label begins, which ends with the call at the latest; NULL: none begins. */
extern int32_t watched_calls;
void watching_step(const char *label);

/* watch(begins): count from now on, or no longer; watchers add up. watched(on_gpu): {label: (count, nanoseconds, least)}. */
PyObject *watching_watch(PyObject *module, PyObject *begins);
PyObject *watching_watched(PyObject *module, PyObject *is_on_gpu);

#endif
