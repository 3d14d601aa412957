#include "watching.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "shim.h"

enum { COUNTED = 1, PROFILED = 2 };
enum { DEEPEST = 64 };

typedef struct {
    const char *label;
    int64_t start;
    void *guard; /* of torch's profiler */
} Range;

typedef struct {
    char *label;
    int64_t count, total, least;
} Counter;

int32_t watched_calls;

static atomic_int watchers;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Open addressing by the label's hash; at most half full. */
static Counter *counters;
static size_t room, used;

/* The range of the innermost call is the one at `base`, if `depth` is greater; those below belong to calls around it. */
static _Thread_local int mode, base, depth;
static _Thread_local Range ranges[DEEPEST];

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

/* FNV-1a, 64 bits. */
static size_t hash_of(const char *label) {
    uint64_t hash = UINT64_C(14695981039346656037);
    for (; *label; label++) hash = (hash ^ (unsigned char)*label) * UINT64_C(1099511628211);
    return (size_t)hash;
}

static Counter *slot_of(Counter *table, size_t size, const char *label) {
    size_t place = hash_of(label) & (size - 1);
    while (table[place].label && strcmp(table[place].label, label) != 0) place = (place + 1) & (size - 1);
    return &table[place];
}

static bool grow(void) {
    size_t size = room ? 2 * room : 256;
    Counter *table = calloc(size, sizeof(Counter));
    if (!table) return false;
    for (size_t i = 0; i < room; i++) {
        if (counters[i].label) *slot_of(table, size, counters[i].label) = counters[i];
    }
    free(counters);
    counters = table;
    room = size;
    return true;
}

/* Without memory a time is not counted; the call goes on. */
static void count(const char *label, int64_t elapsed) {
    pthread_mutex_lock(&lock);
    if (2 * used < room || grow()) {
        Counter *counter = slot_of(counters, room, label);
        if (!counter->label && (counter->label = strdup(label))) {
            counter->least = elapsed;
            used++;
        }
        if (counter->label) {
            counter->count++;
            counter->total += elapsed;
            if (elapsed < counter->least) counter->least = elapsed;
        }
    }
    pthread_mutex_unlock(&lock);
}

static void end_step(void) {
    if (depth == base) return;
    Range *range = &ranges[--depth];
    int64_t elapsed = now() - range->start;
    if (range->guard) shim.record_function_end(range->guard);
    if (mode & COUNTED) count(range->label, elapsed);
}

WatchedCall watching_enter(bool on_cpu) {
    int wanted = on_cpu && atomic_load_explicit(&watchers, memory_order_relaxed) ? COUNTED : 0;
    if (shim.has_callbacks && shim.record_function_start && shim.has_callbacks()) wanted |= PROFILED;
    WatchedCall call = {wanted != 0, mode, base};
    if (wanted) {
        mode = wanted;
        base = depth;
        __atomic_fetch_add(&watched_calls, 1, __ATOMIC_RELAXED);
    }
    return call;
}

void watching_leave(WatchedCall call) {
    if (!call.is_watched) return;
    end_step();
    mode = call.mode;
    base = call.base;
    __atomic_fetch_sub(&watched_calls, 1, __ATOMIC_RELAXED);
}

void watching_step(const char *label) {
    if (!mode) return;
    end_step();
    if (!label || depth == DEEPEST) return;
    Range *range = &ranges[depth++];
    range->label = label;
    range->guard = NULL;
    if (mode & PROFILED && shim.record_function_start(label, NULL, NULL, 0, &range->guard)) range->guard = NULL;
    range->start = now();
}

PyObject *watching_watch(PyObject *Py_UNUSED(module), PyObject *begins) {
    int is_begin = PyObject_IsTrue(begins);
    if (is_begin < 0) return NULL;
    atomic_fetch_add(&watchers, is_begin ? 1 : -1);
    Py_RETURN_NONE;
}

/* A copy, so that no Python runs under the lock. */
static Counter *copied(size_t *size) {
    pthread_mutex_lock(&lock);
    *size = room;
    Counter *copy = malloc((room ? room : 1) * sizeof(Counter));
    if (copy && room) memcpy(copy, counters, room * sizeof(Counter));
    pthread_mutex_unlock(&lock);
    return copy;
}

PyObject *watching_watched(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none)) {
    size_t size;
    Counter *copy = copied(&size);
    if (!copy) return PyErr_NoMemory();
    PyObject *found = PyDict_New();
    for (size_t i = 0; found && i < size; i++) {
        if (!copy[i].label) continue;
        PyObject *times = Py_BuildValue("LLL", copy[i].count, copy[i].total, copy[i].least);
        if (!times || PyDict_SetItemString(found, copy[i].label, times) < 0) Py_CLEAR(found);
        Py_XDECREF(times);
    }
    free(copy);
    return found;
}
