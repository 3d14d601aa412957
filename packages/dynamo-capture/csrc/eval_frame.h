/* What the module asks of the frame hook. */
#ifndef FXS_EVAL_FRAME_H
#define FXS_EVAL_FRAME_H

#include "code_cache.h"

/* Cache an entry; -1 with an exception if it does not fit the code. */
int fxs_admit(PyCodeObject *code, FXSEntry *entry);

/* Frames of the code are not asked about, under any callback. */
int fxs_set_skip(PyCodeObject *code, FXSSkip skip);

/* Frames of the code are not asked about under one callback. */
int fxs_refuse(void *callback, PyCodeObject *code, FXSSkip skip);

/* The objects that a callback answers with, besides an entry or None. */
int fxs_add_answers(PyObject *module);

#endif
