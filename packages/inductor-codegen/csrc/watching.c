#include "watching.h"

#include <stdatomic.h>

#include "shim.h"
#include "step_times.h"

enum { COUNTED = 1, PROFILED = 2, COUNTED_ON_GPU = 4 };
enum { DEEPEST = 64 };

typedef struct {
    const char *label;
    int64_t start;
    void *guard; /* of torch's profiler */
    GpuStep *gpu_step;
} Range;

int32_t watched_calls;

static atomic_int watchers;
/* The range of the innermost call is the one at `base`, if `depth` is greater; those below belong to calls around it. */
static _Thread_local int mode, base, depth;
static _Thread_local Range ranges[DEEPEST];
/* Of the innermost call, from its first step on. */
static _Thread_local GpuHold *hold;

static void end_step(void) {
    if (depth == base) return;
    Range *range = &ranges[--depth];
    int64_t elapsed = step_times_now() - range->start;
    if (range->guard) shim.record_function_end(range->guard);
    if (range->gpu_step) gpu_times_end(range->gpu_step);
    if (mode & COUNTED) step_times_count(false, range->label, elapsed);
}

WatchedCall watching_enter(bool on_cpu) {
    int wanted = 0;
    if (atomic_load_explicit(&watchers, memory_order_relaxed)) wanted = on_cpu ? COUNTED : COUNTED_ON_GPU;
    if (shim.has_callbacks && shim.record_function_start && shim.has_callbacks()) wanted |= PROFILED;
    WatchedCall call = {.is_watched = wanted != 0, .mode = mode, .base = base, .hold = hold};
    if (wanted) {
        call.stream = gpu_times_set_stream((GpuStream){NULL, -1});
        mode = wanted;
        base = depth;
        hold = NULL;
        __atomic_fetch_add(&watched_calls, 1, __ATOMIC_RELAXED);
    }
    return call;
}

void watching_leave(WatchedCall call) {
    if (!call.is_watched) return;
    end_step();
    gpu_times_release(hold);
    gpu_times_set_stream(call.stream);
    mode = call.mode;
    base = call.base;
    hold = call.hold;
    __atomic_fetch_sub(&watched_calls, 1, __ATOMIC_RELAXED);
}

void watching_step(const char *label) {
    if (!mode) return;
    end_step();
    if (!label || depth == DEEPEST) return;
    if (mode & COUNTED_ON_GPU && !hold) hold = gpu_times_hold();
    Range *range = &ranges[depth++];
    range->label = label;
    range->guard = NULL;
    range->gpu_step = mode & COUNTED_ON_GPU ? gpu_times_begin(label) : NULL;
    if (mode & PROFILED && shim.record_function_start(label, NULL, NULL, 0, &range->guard)) range->guard = NULL;
    range->start = step_times_now();
}

PyObject *watching_watch(PyObject *Py_UNUSED(module), PyObject *begins) {
    int is_begin = PyObject_IsTrue(begins);
    if (is_begin < 0) return NULL;
    atomic_fetch_add(&watchers, is_begin ? 1 : -1);
    Py_RETURN_NONE;
}

PyObject *watching_watched(PyObject *Py_UNUSED(module), PyObject *is_on_gpu) {
    int on_gpu = PyObject_IsTrue(is_on_gpu);
    if (on_gpu < 0) return NULL;
    if (on_gpu) gpu_times_collect();
    return step_times_found(on_gpu);
}
