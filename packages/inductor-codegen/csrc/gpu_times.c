#include "gpu_times.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "step_times.h"

enum { DEVICES = 64, MOST_PENDING = 4096 };
enum { HOLD_NANOSECONDS = 20000000, PAUSE_NANOSECONDS = 20000 };

struct GpuStep {
    struct GpuStep *next;
    const char *label; /* lives as long as the process */
    void *start, *end, *stream;
    int32_t device;
};

/* Shared by the host that queues work and the driver's thread that keeps the stream waiting; the second to let go frees it. */
struct GpuHold {
    atomic_int users;
    atomic_bool released;
};

/* The driver's interface, as its documentation has it; results are 0 for success. */
static struct {
    int (*create)(void **event, unsigned flags);
    int (*record)(void *event, void *stream);
    int (*wait)(void *event);
    int (*elapsed)(float *milliseconds, void *start, void *end);
    int (*is_recorded)(void *stream, int *status);
    int (*run_on_host)(void *stream, void (*function)(void *), void *data);
} driver;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static GpuStep *spare[DEVICES], *first, **last = &first;
static int pending;

static _Thread_local GpuStream current = {NULL, -1};

static bool bind(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library) return false;
    driver.create = (int (*)(void **, unsigned))dlsym(library, "cuEventCreate");
    driver.record = (int (*)(void *, void *))dlsym(library, "cuEventRecord");
    driver.wait = (int (*)(void *))dlsym(library, "cuEventSynchronize");
    driver.elapsed = (int (*)(float *, void *, void *))dlsym(library, "cuEventElapsedTime");
    driver.is_recorded = (int (*)(void *, int *))dlsym(library, "cuStreamIsCapturing");
    driver.run_on_host = (int (*)(void *, void (*)(void *), void *))dlsym(library, "cuLaunchHostFunc");
    return driver.create && driver.record && driver.wait && driver.elapsed && driver.is_recorded && driver.run_on_host;
}

static bool is_bound(void) {
    static atomic_int bound; /* 0 not tried, 1 there, -1 missing; trying twice does no harm */
    if (!bound) bound = bind() ? 1 : -1;
    return bound > 0;
}

GpuStream gpu_times_set_stream(GpuStream stream) {
    GpuStream before = current;
    current = stream;
    return before;
}

/* What is recorded into a CUDA graph runs later, if at all. */
static bool can_time(void) {
    int status = 0;
    return current.device >= 0 && current.device < DEVICES && is_bound() &&
           !driver.is_recorded(current.stream, &status) && !status;
}

/* ---- steps ---- */

static GpuStep *new_step(void) {
    GpuStep *step = calloc(1, sizeof(GpuStep));
    if (step && (driver.create(&step->start, 0) || driver.create(&step->end, 0))) {
        free(step); /* out of the driver's memory: an event may be lost */
        step = NULL;
    }
    return step;
}

static void give_back(GpuStep *step) {
    step->next = spare[step->device];
    spare[step->device] = step;
}

GpuStep *gpu_times_begin(const char *label) {
    if (!can_time()) return NULL;
    const char *kept = step_times_label(true, label);
    if (!kept) return NULL;
    pthread_mutex_lock(&lock);
    GpuStep *step = spare[current.device];
    if (step) spare[current.device] = step->next;
    pthread_mutex_unlock(&lock);
    if (!step && !(step = new_step())) return NULL;
    step->label = kept;
    step->stream = current.stream;
    step->device = current.device;
    if (!driver.record(step->start, step->stream)) return step;
    pthread_mutex_lock(&lock);
    give_back(step);
    pthread_mutex_unlock(&lock);
    return NULL;
}

/* The oldest `count` steps that have ended, no longer listed. */
static GpuStep *take(int count) {
    pthread_mutex_lock(&lock);
    GpuStep *oldest = first, *newest = NULL;
    for (GpuStep *step = first; step && count-- > 0; step = step->next, pending--) newest = step;
    if (newest) {
        first = newest->next;
        newest->next = NULL;
        if (!first) last = &first;
    }
    pthread_mutex_unlock(&lock);
    return newest ? oldest : NULL;
}

static void count_steps(GpuStep *steps) {
    while (steps) {
        GpuStep *step = steps;
        float milliseconds;
        steps = step->next;
        if (!driver.wait(step->end) && !driver.elapsed(&milliseconds, step->start, step->end)) {
            step_times_count(true, step->label, (int64_t)(milliseconds * 1e6));
        }
        pthread_mutex_lock(&lock);
        give_back(step);
        pthread_mutex_unlock(&lock);
    }
}

void gpu_times_end(GpuStep *step) {
    pthread_mutex_lock(&lock);
    if (driver.record(step->end, step->stream)) {
        give_back(step);
    } else {
        step->next = NULL;
        *last = step;
        last = &step->next;
        pending++;
    }
    bool is_full = pending > MOST_PENDING;
    pthread_mutex_unlock(&lock);
    if (is_full) count_steps(take(MOST_PENDING / 2));
}

void gpu_times_collect(void) {
    if (!first) return;
    Py_BEGIN_ALLOW_THREADS;
    count_steps(take(INT32_MAX));
    Py_END_ALLOW_THREADS;
}

/* ---- holding a stream ---- */

static void let_go(GpuHold *hold) {
    if (atomic_fetch_sub(&hold->users, 1) == 1) free(hold);
}

static void keep_waiting(void *data) {
    GpuHold *hold = data;
    const struct timespec pause = {0, PAUSE_NANOSECONDS};
    const int64_t end = step_times_now() + HOLD_NANOSECONDS;
    while (!atomic_load(&hold->released) && step_times_now() < end) nanosleep(&pause, NULL);
    let_go(hold);
}

GpuHold *gpu_times_hold(void) {
    if (!can_time()) return NULL;
    GpuHold *hold = malloc(sizeof(GpuHold));
    if (!hold) return NULL;
    atomic_init(&hold->users, 2);
    atomic_init(&hold->released, false);
    if (!driver.run_on_host(current.stream, keep_waiting, hold)) return hold;
    free(hold);
    return NULL;
}

void gpu_times_release(GpuHold *hold) {
    if (!hold) return;
    atomic_store(&hold->released, true);
    let_go(hold);
}
