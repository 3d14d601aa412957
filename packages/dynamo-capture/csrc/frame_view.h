/* A snapshot of a frame at its entry, as a Python object. */
#ifndef FXS_FRAME_VIEW_H
#define FXS_FRAME_VIEW_H

#include "python_internals.h"

extern PyTypeObject FXSFrameView_Type;

/* A new view for the callback that is asked; NULL with an exception on failure. */
PyObject *fxs_frame_view(_PyInterpreterFrame *frame, PyObject *callback);

#endif
