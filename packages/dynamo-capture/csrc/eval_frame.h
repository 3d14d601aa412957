/* What the module asks of the frame hook. */
#ifndef FXS_EVAL_FRAME_H
#define FXS_EVAL_FRAME_H

#include "code_cache.h"

/* Cache an entry for a callback (NULL: for any); -1 with an exception if it does not fit the code. */
int fxs_admit(void *callback, PyCodeObject *code, FXSEntry *entry);

/* The objects that a callback answers with, besides an entry or None. */
int fxs_add_answers(PyObject *module);

#endif
