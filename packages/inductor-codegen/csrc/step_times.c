#include "step_times.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct {
    char *label;
    int64_t count, total, least;
} Counter;

/* Open addressing by the label's hash; at most half full. */
typedef struct {
    Counter *counters;
    size_t room, used;
} Table;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Table tables[2];

int64_t step_times_now(void) {
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

static Counter *slot_of(Counter *counters, size_t size, const char *label) {
    size_t place = hash_of(label) & (size - 1);
    while (counters[place].label && strcmp(counters[place].label, label) != 0) place = (place + 1) & (size - 1);
    return &counters[place];
}

static bool grow(Table *table) {
    size_t size = table->room ? 2 * table->room : 256;
    Counter *counters = calloc(size, sizeof(Counter));
    if (!counters) return false;
    for (size_t i = 0; i < table->room; i++) {
        Counter *counter = &table->counters[i];
        if (counter->label) *slot_of(counters, size, counter->label) = *counter;
    }
    free(table->counters);
    table->counters = counters;
    table->room = size;
    return true;
}

/* Under the lock; NULL without memory. */
static Counter *counter_of(Table *table, const char *label) {
    if (2 * table->used >= table->room && !grow(table)) return NULL;
    Counter *counter = slot_of(table->counters, table->room, label);
    if (!counter->label) {
        if (!(counter->label = strdup(label))) return NULL;
        table->used++;
    }
    return counter;
}

void step_times_count(bool on_gpu, const char *label, int64_t nanoseconds) {
    pthread_mutex_lock(&lock);
    Counter *counter = counter_of(&tables[on_gpu], label);
    if (counter) {
        if (!counter->count || nanoseconds < counter->least) counter->least = nanoseconds;
        counter->count++;
        counter->total += nanoseconds;
    }
    pthread_mutex_unlock(&lock);
}

const char *step_times_label(bool on_gpu, const char *label) {
    pthread_mutex_lock(&lock);
    Counter *counter = counter_of(&tables[on_gpu], label);
    const char *kept = counter ? counter->label : NULL;
    pthread_mutex_unlock(&lock);
    return kept;
}

/* A copy, so that no Python runs under the lock. */
static Counter *copied(const Table *table, size_t *size) {
    pthread_mutex_lock(&lock);
    *size = table->room;
    Counter *copy = malloc((table->room ? table->room : 1) * sizeof(Counter));
    if (copy && table->room) memcpy(copy, table->counters, table->room * sizeof(Counter));
    pthread_mutex_unlock(&lock);
    return copy;
}

PyObject *step_times_found(bool on_gpu) {
    size_t size;
    Counter *copy = copied(&tables[on_gpu], &size);
    if (!copy) return PyErr_NoMemory();
    PyObject *found = PyDict_New();
    for (size_t i = 0; found && i < size; i++) {
        if (!copy[i].count) continue;
        PyObject *times = Py_BuildValue("LLL", copy[i].count, copy[i].total, copy[i].least);
        if (!times || PyDict_SetItemString(found, copy[i].label, times) < 0) Py_CLEAR(found);
        Py_XDECREF(times);
    }
    free(copy);
    return found;
}
