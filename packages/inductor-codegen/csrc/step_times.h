/* How often the steps of compiled graphs ran and how long they took, by label: one table for the CPU's and one for GPUs'. */
#ifndef INDUCTOR_CODEGEN_STEP_TIMES_H
#define INDUCTOR_CODEGEN_STEP_TIMES_H

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

/* Nanoseconds of a clock that only goes forward. */
int64_t step_times_now(void);

/* Count one run. Without memory it is not counted. Any thread, without the GIL. */
void step_times_count(bool on_gpu, const char *label, int64_t nanoseconds);

/* A copy of a label that lives as long as the process, equal labels once; NULL without memory. */
const char *step_times_label(bool on_gpu, const char *label);

/* With the GIL: {label: (count, nanoseconds in all, nanoseconds at least)}, of labels that were counted. */
PyObject *step_times_found(bool on_gpu);

#endif
