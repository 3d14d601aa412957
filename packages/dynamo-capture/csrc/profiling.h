/* Ranges that a profiler shows for calls of compiled functions. */
#ifndef FXS_PROFILING_H
#define FXS_PROFILING_H

#include "python_internals.h"

/* Say where a profiler leaves a flag, variables[name], and who begins a range: begin(region) -> range or None. */
int fxs_watch_profiler(PyObject *variables, PyObject *name, PyObject *begin);
/* A range for a call of `region`, begun, if there is a profiler: a new reference; NULL without an exception: none. */
PyObject *fxs_begin_range(PyObject *region);
/* End it; an exception that is on its way stays. */
void fxs_end_range(PyObject *range);

#endif
