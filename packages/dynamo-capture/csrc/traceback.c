#include "traceback.h"

#include <frameobject.h>

/* Whoever reads f_locals finds no variable bound: free variables are read through cells, so these are there, empty. */
static int fill_free_variables(PyFrameObject *frame, PyCodeObject *code)
{
    for (int i = code->co_nlocalsplus - code->co_nfreevars; i < code->co_nlocalsplus; i++) {
        PyObject *cell = PyCell_New(NULL);
        if (cell == NULL) {
            return -1;
        }
        frame->f_frame->localsplus[i] = cell;
    }
    return 0;
}

PyObject *fxs_traceback_frame(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *code, *globals;
    int offset, line;
    if (!PyArg_ParseTuple(args, "O!O!ii", &PyCode_Type, &code, &PyDict_Type, &globals, &offset, &line)) {
        return NULL;
    }
    PyFrameObject *frame = PyFrame_New(PyThreadState_Get(), (PyCodeObject *)code, globals, NULL);
    if (frame == NULL) {
        return NULL;
    }
    if (fill_free_variables(frame, (PyCodeObject *)code) < 0) {
        Py_DECREF(frame);
        return NULL;
    }
    fxs_frame_set_offset(frame->f_frame, (PyCodeObject *)code, offset);
    frame->f_lineno = line;
    return (PyObject *)frame;
}
